#include "plan/sampler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "plan/large.hpp"

namespace brimful {
namespace {

enum KeyTag : std::uint64_t { kPassKey = 2 };

}  // namespace

Sampler::Sampler(const Corpus& corpus, std::span<const std::int64_t> deliverable,
                 ShuffleRule shuffle, std::uint64_t seed, std::span<const MixFrom> mixes)
    : shuffle_(shuffle), seed_(seed) {
  for (int s = 0; s < corpus.num_sources(); ++s) {
    const std::int64_t first = corpus.source_start(s);
    sources_.push_back({first, corpus.source_start(s + 1) - first});
  }
  if (corpus.num_documents() == 0) return;
  for (const MixFrom& mix : mixes) begin_era(corpus, mix, deliverable);
}

void Sampler::begin_era(const Corpus& corpus, const MixFrom& mix,
                        std::span<const std::int64_t> deliverable) {
  const auto& [rule, epoch, first] = mix;
  EraStart start{.number = static_cast<int>(eras_.size()), .epoch = epoch, .first = first};
  if (eras_.empty()) {
    start.drawn.resize(sources_.size());
    start.at_epoch = start.drawn;
  } else {
    const Era& last = eras_.back();
    const bool later = std::pair(epoch, first) > std::pair(last.epoch(), last.first());
    if (!later || epoch < 0 || epoch >= most_epochs() || first < 0 ||
        (first > 0 && first >= epoch_draws(epoch))) {
      throw StateError("the state has a change of the mix at draw " + std::to_string(first) +
                       " of epoch " + std::to_string(epoch) +
                       ", a place that the run before the change does not have");
    }
    start.epoch_start = epoch_start(epoch);
    start.drawn = last.drawn_before(epoch, start.epoch_start, first);
    const Era& era = eras_[era_of(epoch, 0)];
    start.at_epoch = era.drawn_before(epoch, start.epoch_start, 0);
  }
  eras_.emplace_back(corpus, rule, deliverable, seed_, std::move(start));
}

std::size_t Sampler::era_of(std::int64_t epoch, std::int64_t first) const {
  const auto next = std::upper_bound(
      eras_.begin(), eras_.end(), std::pair(epoch, first),
      [](const auto& place, const Era& e) { return place < std::pair(e.epoch(), e.first()); });
  return static_cast<std::size_t>(next - eras_.begin()) - 1;
}

// The draw of the run with which an epoch begins.
std::int64_t Sampler::epoch_start(std::int64_t epoch) const {
  std::size_t e = eras_.size() - 1;
  while (eras_[e].first_whole_epoch() > epoch) --e;
  return eras_[e].epoch_start(epoch);
}

std::int64_t Sampler::epoch_draws(std::int64_t epoch) const {
  return eras_.empty() ? 0 : epoch_start(epoch + 1) - epoch_start(epoch);
}

std::int64_t Sampler::most_epochs() const {
  return eras_.empty() ? kMostDraws : eras_.back().most_epochs();
}

void Sampler::draw(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  if (out.empty()) return;
  const std::int64_t start = epoch_start(epoch);
  UnsetVector<Course::Draw> draws(out.size());
  for (std::size_t done = 0; done < draws.size();) {
    const std::size_t e = era_of(epoch, first);
    std::size_t n = draws.size() - done;
    if (e + 1 < eras_.size() && eras_[e + 1].epoch() == epoch) {
      n = std::min(n, static_cast<std::size_t>(eras_[e + 1].first() - first));
    }
    eras_[e].draw(epoch, start, first, std::span(draws).subspan(done, n));
    done += n;
    first += static_cast<std::int64_t>(n);
  }
  int key_source = -1;  // draws that follow each other often have one key
  std::int64_t key_pass = 0;
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const auto [source, number] = draws[i];
    const Range& range = sources_[static_cast<std::size_t>(source)];
    const std::int64_t pass = number / range.count;
    if (shuffle_.kind != Shuffle::kNone && (source != key_source || pass != key_pass)) {
      key = derive_key(seed_, kPassKey, source, pass);
      key_source = source;
      key_pass = pass;
    }
    out[i] = range.first + shuffled(shuffle_, number % range.count, range.count, key);
  }
}

}  // namespace brimful
