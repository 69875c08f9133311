#include "plan/era.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace brimful {
namespace {

enum KeyTag : std::uint64_t { kPhaseKey = 1, kChangeKey = 3 };

std::int64_t documents_of(const Corpus& corpus, std::size_t s) {
  const int source = static_cast<int>(s);
  return corpus.source_start(source + 1) - corpus.source_start(source);
}

// Each source's share of the draws, [sources], under the weights of one stretch; no weights mean by
// document count. A source that has nothing to give gets none.
std::vector<double> shares_of(const Corpus& corpus, const Mix& mix, const MixStretch* stretch,
                              std::span<const std::int64_t> deliverable) {
  std::vector<double> shares(static_cast<std::size_t>(corpus.num_sources()));
  bool any = false;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const std::int64_t count = documents_of(corpus, s);
    const double weight = stretch == nullptr ? 1.0 : stretch->weights[s];
    // Where a rule takes all tokens of a source, its documents are drawn, and counted as dropped.
    const std::int64_t tokens =
        deliverable[s] > 0 ? deliverable[s] : corpus.source_tokens(static_cast<int>(s));
    const bool by_tokens = stretch != nullptr && mix.unit == WeightUnit::kTokens;
    if (count == 0 || weight == 0 || (by_tokens && tokens == 0)) continue;
    double share = stretch != nullptr ? weight : static_cast<double>(count);
    if (by_tokens) share *= static_cast<double>(count) / static_cast<double>(tokens);
    shares[s] = share;
    any = true;
  }
  if (!any && corpus.num_documents() > 0) {
    const std::int64_t from = stretch == nullptr ? 0 : stretch->from;
    throw PlanError("mix: every source that has documents has weight 0" +
                    (from > 0 ? " from token " + std::to_string(from) + " on" : std::string()) +
                    "; give one a weight");
  }
  return shares;
}

// Whether shares are in proportion to document counts, within rounding: sources that run dry
// together give whole epochs whatever the rule says.
bool by_documents(const Corpus& corpus, std::span<const double> shares) {
  double first_share = 0;
  double first_count = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    if (shares[s] == 0) continue;
    const auto count = static_cast<double>(documents_of(corpus, s));
    if (first_share == 0) {
      first_share = shares[s];
      first_count = count;
    }
    const double expected = first_share * count / first_count;
    if (std::abs(shares[s] - expected) > 1e-9 * expected) return false;
  }
  return true;
}

// Draws of each source in the whole run, [sources].
std::vector<std::int64_t> limits_of(const Corpus& corpus, const Mix& mix) {
  std::vector<std::int64_t> limits(static_cast<std::size_t>(corpus.num_sources()), kNever);
  for (std::size_t s = 0; s < mix.max_passes.size(); ++s) {
    // Not one less where a fraction of the count is a whole number but for rounding.
    const double most =
        std::floor(mix.max_passes[s] * static_cast<double>(documents_of(corpus, s)) * (1 + 1e-15));
    if (most < static_cast<double>(kMostDraws)) limits[s] = static_cast<std::int64_t>(most);
  }
  return limits;
}

struct FirstDry {
  int source = 0;
  std::int64_t draw = kNever;  // that takes its last document
};

// The source that first gives its last document, where all begin with their first.
FirstDry first_dry(const Corpus& corpus, std::span<const double> shares, std::uint64_t key) {
  std::vector<int> live;
  std::vector<double> live_shares;
  std::vector<std::int64_t> last;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    if (shares[s] == 0) continue;
    live.push_back(static_cast<int>(s));
    live_shares.push_back(shares[s]);
    last.push_back(documents_of(corpus, s) - 1);
  }
  MixTree(live_shares, key).locate(last);
  const auto first = std::min_element(last.begin(), last.end());
  return {live[static_cast<std::size_t>(first - last.begin())], *first};
}

}  // namespace

Era::Era(const Corpus& corpus, const Mix& mix, std::span<const std::int64_t> deliverable,
         std::uint64_t seed, EraStart start)
    : start_(std::move(start)) {
  for (std::size_t s = 0; s < deliverable.size(); ++s) {
    means_.push_back(mean_tokens(deliverable[s], documents_of(corpus, s)));
  }
  std::vector<Stretch> stretches;
  if (mix.schedule.empty()) {
    stretches.push_back({0, shares_of(corpus, mix, nullptr, deliverable)});
  }
  for (const MixStretch& stretch : mix.schedule) {
    stretches.push_back({stretch.from, shares_of(corpus, mix, &stretch, deliverable)});
  }
  const std::uint64_t key = start_.number == 0 ? derive_key(seed, kPhaseKey)
                                               : derive_key(seed, kChangeKey, start_.number);
  const std::vector<double>& shares = stretches.front().shares;
  const bool runs_on = stretches.size() > 1 || !mix.max_passes.empty() || mix.epoch_tokens > 0;
  if (mix.when_dry == WhenDry::kDrop || (!runs_on && by_documents(corpus, shares))) {
    plan_whole_epochs(corpus, shares, key);
    return;
  }
  plan_run(corpus, mix, stretches, key);
  if (mix.when_dry == WhenDry::kError) refuse_dry(corpus, shares, key);
}

// Every epoch takes each document once; sources leave it when they are dry. Where the era begins in
// mid-epoch, each source first gives the rest of the pass it is in.
void Era::plan_whole_epochs(const Corpus& corpus, std::span<const double> shares,
                            std::uint64_t key) {
  const std::size_t n = shares.size();
  std::vector<std::int64_t> counts(n);
  std::vector<std::int64_t> ends = start_.drawn;  // draws before the first whole epoch
  for (std::size_t s = 0; s < n; ++s) {
    counts[s] = documents_of(corpus, s);
    if (shares[s] == 0 || start_.number == 0) continue;
    const std::int64_t in_pass = start_.drawn[s] % counts[s];
    const bool had_its_pass = in_pass == 0 && start_.drawn[s] > start_.at_epoch[s];
    if (!had_its_pass) ends[s] += counts[s] - in_pass;
  }
  course_.emplace(start_.drawn, means_, PhaseKeys{key, true});
  if (start_.number > 0) {
    course_->extend(shares, ends, Course::kEndless);
    from_epoch_ = start_.epoch + 1;
  }
  from_draw_ = begin() + course_->draws();
  base_ = std::move(ends);
  per_epoch_.emplace(std::vector<std::int64_t>(n), means_, PhaseKeys{key});
  per_epoch_->extend(shares, counts, Course::kEndless);
  in_epoch_ = per_epoch_->drawn_before(per_epoch_->draws());
  epoch_draws_ = per_epoch_->draws();
}

// Sources run on over epochs, by the schedule and up to their limits.
void Era::plan_run(const Corpus& corpus, const Mix& mix, const std::vector<Stretch>& stretches,
                   std::uint64_t key) {
  const std::vector<std::int64_t> limits = limits_of(corpus, mix);
  course_.emplace(start_.drawn, means_, PhaseKeys{key, true});
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const bool last = i + 1 == stretches.size();
    course_->extend(stretches[i].shares, limits,
                    last ? Course::kEndless : token_units(stretches[i + 1].from));
  }
  for (std::size_t s = 0; s < means_.size(); ++s) {
    const bool used = std::any_of(stretches.begin(), stretches.end(),
                                  [&](const Stretch& stretch) { return stretch.shares[s] > 0; });
    if (used) epoch_draws_ += documents_of(corpus, s);
  }
  if (mix.when_dry == WhenDry::kStop) {
    const FirstDry dry = first_dry(corpus, stretches.front().shares, key);
    if (dry.draw < kNever) epoch_draws_ = dry.draw + 1;
  }
  std::int64_t end = start_.epoch_start + epoch_draws_;  // of the epoch in which the era begins
  if (mix.epoch_tokens > 0) {
    refuse_short_epochs(corpus, mix.epoch_tokens, stretches);
    refuse_endless_epochs(mix.epoch_tokens, stretches.back().shares, limits);
    epoch_tokens_ = token_units(mix.epoch_tokens);
    end = begin() + course_->draw_at(tokens_of(start_.at_epoch, means_) + epoch_tokens_);
  }
  if (start_.number == 0) return;
  from_epoch_ = start_.epoch + 1;
  from_draw_ = std::min(std::max(end, begin()), run_end());
  from_tokens_ = tokens_of(course_->drawn_before(from_draw_ - begin()), means_);
}

// An epoch of at least the tokens that a draw brings is never empty.
void Era::refuse_short_epochs(const Corpus& corpus, std::int64_t epoch_tokens,
                              const std::vector<Stretch>& stretches) const {
  bool any = false;
  for (const Stretch& stretch : stretches) {
    for (std::size_t s = 0; s < means_.size(); ++s) {
      if (stretch.shares[s] == 0) continue;
      any = any || means_[s] > 0;
      if (static_cast<TokenUnits>(means_[s]) <= token_units(epoch_tokens)) continue;
      throw PlanError("epoch_tokens is " + std::to_string(epoch_tokens) +
                      ", less than a document of source '" +
                      corpus.source(static_cast<int>(s)).name + "' brings on average (" +
                      std::to_string(means_[s] / static_cast<MeanTokens>(token_units(1))) +
                      " tokens); an epoch would be empty");
    }
  }
  if (!any) {
    throw PlanError("epoch_tokens is " + std::to_string(epoch_tokens) +
                    ", but the sources that have a weight hold no tokens that could be delivered");
  }
}

// What the last stretch draws without a limit goes on for ever; where nearly all of that delivers
// nothing, the tokens of an epoch would not come.
void Era::refuse_endless_epochs(std::int64_t epoch_tokens, std::span<const double> shares,
                                std::span<const std::int64_t> limits) const {
  if (course_->draws() != kNever) return;
  double endless = 0;
  double units = 0;
  for (std::size_t s = 0; s < means_.size(); ++s) {
    if (limits[s] != kNever) continue;
    endless += shares[s];
    units += shares[s] * static_cast<double>(means_[s]);
  }
  const double per_draw = units / endless / static_cast<double>(token_units(1));
  if (per_draw * static_cast<double>(kMostDraws) >= static_cast<double>(epoch_tokens)) return;
  throw PlanError("epoch_tokens is " + std::to_string(epoch_tokens) +
                  ", but nearly all draws go to sources whose documents deliver no tokens, so that "
                  "an epoch would never end; give weight to others");
}

void Era::refuse_dry(const Corpus& corpus, std::span<const double> shares,
                     std::uint64_t key) const {
  const FirstDry dry = first_dry(corpus, shares, key);
  const std::int64_t draws = epoch_start(from_epoch_ + 1) - epoch_start(from_epoch_);
  if (dry.draw >= draws - 1) return;
  throw PlanError("mix: source '" + corpus.source(dry.source).name + "' has " +
                  std::to_string(documents_of(corpus, static_cast<std::size_t>(dry.source))) +
                  " documents and runs dry after " + std::to_string(dry.draw + 1) + " of the " +
                  std::to_string(draws) +
                  " draws of an epoch; lower its weight, or choose when_dry=\"repeat\", \"drop\" "
                  "or \"stop\"");
}

// The draw of the run behind the last one; that of the last that can be numbered, if endless.
std::int64_t Era::run_end() const {
  if (per_epoch_) return kMostDraws;
  return course_->draws() < kMostDraws - begin() ? begin() + course_->draws() : kMostDraws;
}

std::int64_t Era::epoch_start(std::int64_t epoch) const {
  const auto epochs = static_cast<TokenUnits>(epoch - from_epoch_);
  if (epoch_tokens_ > 0) {
    const std::int64_t draw = course_->draw_at(from_tokens_ + epochs * epoch_tokens_);
    return std::min(begin() + draw, run_end());
  }
  const TokenUnits draw =
      static_cast<TokenUnits>(from_draw_) + epochs * static_cast<TokenUnits>(epoch_draws_);
  return static_cast<std::int64_t>(std::min(draw, static_cast<TokenUnits>(run_end())));
}

std::int64_t Era::most_epochs() const {
  if (epoch_tokens_ > 0) {
    return static_cast<std::int64_t>(token_units(kMostDraws) / epoch_tokens_);
  }
  return from_epoch_ + (kMostDraws - from_draw_) / std::max<std::int64_t>(1, epoch_draws_);
}

void Era::draw(std::int64_t epoch, std::int64_t start, std::int64_t first,
               std::span<Course::Draw> out) const {
  if (!per_epoch_ || epoch < from_epoch_) {
    course_->draw(start + first - begin(), out);
    return;
  }
  per_epoch_->draw(first, out);
  for (Course::Draw& draw : out) {
    const auto s = static_cast<std::size_t>(draw.source);
    draw.number += base_[s] + (epoch - from_epoch_) * in_epoch_[s];
  }
}

std::vector<std::int64_t> Era::drawn_before(std::int64_t epoch, std::int64_t start,
                                            std::int64_t first) const {
  if (!per_epoch_ || epoch < from_epoch_) return course_->drawn_before(start + first - begin());
  std::vector<std::int64_t> drawn = per_epoch_->drawn_before(first);
  for (std::size_t s = 0; s < drawn.size(); ++s) {
    drawn[s] += base_[s] + (epoch - from_epoch_) * in_epoch_[s];
  }
  return drawn;
}

}  // namespace brimful
