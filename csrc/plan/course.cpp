#include "plan/course.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace brimful {
namespace {

constexpr int kUnitBits = 20;

// The least k in (low, high] for which `reached(k)` holds; it holds for high, if for any, and from
// the first one on.
template <class Reached>
std::int64_t least(std::int64_t low, std::int64_t high, const Reached& reached) {
  for (std::int64_t step = 1; step < high - low; step *= 2) {
    if (reached(low + step)) {
      high = low + step;
      break;
    }
    low += step;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (reached(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

MeanTokens mean_tokens(std::int64_t tokens, std::int64_t documents) {
  if (documents == 0) return 0;
  return static_cast<MeanTokens>(token_units(tokens) / static_cast<TokenUnits>(documents));
}

TokenUnits token_units(std::int64_t tokens) { return static_cast<TokenUnits>(tokens) << kUnitBits; }

TokenUnits tokens_of(std::span<const std::int64_t> draws, std::span<const MeanTokens> means) {
  TokenUnits sum = 0;
  for (std::size_t s = 0; s < draws.size(); ++s) {
    sum += static_cast<TokenUnits>(draws[s]) * static_cast<TokenUnits>(means[s]);
  }
  return sum;
}

std::uint64_t PhaseKeys::of(std::size_t phase) const {
  return phase == 0 && plain_first ? key : derive_key(key, phase);
}

std::vector<std::int64_t> Course::Phase::taken(std::int64_t arrival) const {
  std::vector<std::int64_t> counts(live.size());
  tree.count(arrival, counts);
  for (std::size_t t = 0; t < live.size(); ++t) counts[t] = std::min(counts[t], rests[t]);
  return counts;
}

std::int64_t Course::Phase::draws_before(std::int64_t arrival) const {
  const std::vector<std::int64_t> counts = taken(arrival);
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t Course::Phase::arrival_of(std::int64_t draws) const {
  if (!dries || live.size() == 1) return draws;
  const auto reached = [&](std::int64_t k) { return draws_before(k) > draws; };
  return least(draws, std::min(arrivals, kMostDraws), reached) - 1;
}

TokenUnits Course::Phase::tokens_before(std::int64_t arrival,
                                        std::span<const MeanTokens> means) const {
  const std::vector<std::int64_t> counts = taken(arrival);
  TokenUnits sum = 0;
  for (std::size_t t = 0; t < live.size(); ++t) {
    sum += static_cast<TokenUnits>(counts[t]) *
           static_cast<TokenUnits>(means[static_cast<std::size_t>(live[t])]);
  }
  return sum;
}

std::int64_t Course::Phase::arrival_at(TokenUnits tokens, std::span<const MeanTokens> means) const {
  const std::int64_t most = std::min(arrivals, kMostDraws);
  if (tokens == 0) return 0;
  if (tokens_before(most, means) < tokens) return kNever;
  return least(0, most, [&](std::int64_t k) { return tokens_before(k, means) >= tokens; });
}

Course::Course(std::vector<std::int64_t> drawn, std::vector<MeanTokens> means, PhaseKeys keys)
    : begun_(drawn), drawn_(std::move(drawn)), means_(std::move(means)), keys_(keys) {}

void Course::extend(std::span<const double> shares, std::span<const std::int64_t> limits,
                    TokenUnits until) {
  while (draws_ != kNever) {
    if (until != kEndless && tokens_of(drawn_, means_) >= until) return;
    std::vector<int> live;
    for (std::size_t s = 0; s < shares.size(); ++s) {
      if (shares[s] > 0 && drawn_[s] < limits[s]) live.push_back(static_cast<int>(s));
    }
    if (live.empty()) return;
    Phase phase = begin_phase(std::move(live), shares, limits);
    bool reached = false;
    if (until != kEndless) {
      const std::int64_t end = phase.arrival_at(until - phase.tokens, means_);
      reached = end != kNever;
      if (reached) phase.arrivals = end;
      if (phase.arrivals == kNever && phase.tokens_before(kMostDraws, means_) == 0) {
        throw PlanError(
            "mix: the sources that have a weight hold no tokens that could be delivered, so a "
            "position in tokens is never reached; give weight to others");
      }
    }
    append(std::move(phase));
    if (reached) return;
  }
}

// All that the sources `live` have from here on, up to the arrival at which at most half of the
// shares is still alive.
Course::Phase Course::begin_phase(std::vector<int> live, std::span<const double> shares,
                                  std::span<const std::int64_t> limits) const {
  const std::size_t n = live.size();
  std::vector<double> live_shares(n);
  std::vector<std::int64_t> origins(n);
  std::vector<std::int64_t> rests(n);
  bool capped = false;
  for (std::size_t t = 0; t < n; ++t) {
    const auto s = static_cast<std::size_t>(live[t]);
    live_shares[t] = shares[s];
    origins[t] = drawn_[s];
    rests[t] = limits[s] == kNever ? kNever : limits[s] - drawn_[s];
    capped = capped || rests[t] != kNever;
  }
  MixTree tree(live_shares, keys_.of(phases_.size()));
  std::int64_t end = kNever;
  if (capped) {
    std::vector<std::int64_t> dry(n);  // the arrival that takes the source's last document
    for (std::size_t t = 0; t < n; ++t) dry[t] = rests[t] == kNever ? kNever : rests[t] - 1;
    tree.locate(dry);
    std::vector<std::size_t> by_end(n);
    std::iota(by_end.begin(), by_end.end(), std::size_t{0});
    std::sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(dry[a], a) < std::pair(dry[b], b);
    });
    double alive = std::accumulate(live_shares.begin(), live_shares.end(), 0.0);
    const double half = alive / 2;
    for (const std::size_t t : by_end) {
      end = dry[t] >= kMostDraws ? kNever : dry[t] + 1;
      alive -= live_shares[t];
      if (end == kNever || alive <= half) break;
    }
  }
  return {draws_,
          tokens_of(drawn_, means_),
          end,
          capped,
          std::move(tree),
          std::move(live),
          std::move(origins),
          std::move(rests)};
}

void Course::append(Phase phase) {
  if (phase.arrivals == kNever) {
    draws_ = kNever;
  } else {
    const std::vector<std::int64_t> counts = phase.taken(phase.arrivals);
    for (std::size_t t = 0; t < counts.size(); ++t) {
      drawn_[static_cast<std::size_t>(phase.live[t])] += counts[t];
      draws_ += counts[t];
    }
  }
  phases_.push_back(std::move(phase));
}

const Course::Phase& Course::phase_of(std::int64_t draw) const {
  const auto next = std::upper_bound(phases_.begin(), phases_.end(), draw,
                                     [](std::int64_t d, const Phase& p) { return d < p.start; });
  return *std::prev(next);
}

void Course::draw(std::int64_t first, std::span<Draw> out) const {
  if (out.empty()) return;
  const Phase* phase = &phase_of(first);
  std::int64_t arrival = phase->arrival_of(first - phase->start);
  for (std::size_t i = 0; i < out.size();) {
    if (arrival == phase->arrivals) {
      ++phase;
      arrival = 0;
    }
    const auto [leaf, count] = phase->tree.arrival(arrival++);
    const auto t = static_cast<std::size_t>(leaf);
    if (count < phase->rests[t]) out[i++] = {phase->live[t], phase->origins[t] + count};
  }
}

std::vector<std::int64_t> Course::drawn_before(std::int64_t draw) const {
  if (draw == draws_) return drawn_;
  std::vector<std::int64_t> drawn = begun_;
  for (const Phase& phase : phases_) {
    if (phase.start >= draw) break;
    const bool last = &phase == &phase_of(draw);
    const std::vector<std::int64_t> counts =
        phase.taken(last ? phase.arrival_of(draw - phase.start) : phase.arrivals);
    for (std::size_t t = 0; t < counts.size(); ++t) {
      drawn[static_cast<std::size_t>(phase.live[t])] += counts[t];
    }
  }
  return drawn;
}

std::int64_t Course::draw_at(TokenUnits tokens) const {
  const auto next = std::partition_point(phases_.begin(), phases_.end(),
                                         [&](const Phase& p) { return p.tokens < tokens; });
  if (next == phases_.begin()) return 0;
  const Phase& phase = *std::prev(next);
  const std::int64_t arrival = phase.arrival_at(tokens - phase.tokens, means_);
  if (arrival == kNever) return std::min(draws_, kMostDraws);
  return phase.start + phase.draws_before(arrival);
}

}  // namespace brimful
