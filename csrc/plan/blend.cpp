// Built without contracting a * b - c into one rounding (CMakeLists.txt): ties would fall
// otherwise.
#include "plan/blend.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

constexpr std::size_t kMostSets = 32766;  // they are numbered in 16 bits
constexpr std::size_t kFew = 6;           // sets that are looked at one by one
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Indices {
  std::span<std::int16_t> sets;
  std::span<std::int64_t> numbers;
};

// A set is behind by its share of the samples so far, less those it got. One that has given its
// limit has infinitely many, and is never behind again.
void give(std::size_t set, std::size_t sample, double limit, double& taken, const Indices& out) {
  out.sets[sample] = static_cast<std::int16_t>(set);
  out.numbers[sample] = static_cast<std::int64_t>(taken);
  taken += 1;
  if (taken == limit) taken = kInfinity;
}

double samples_before(std::size_t sample) { return std::max(static_cast<double>(sample), 1.0); }

template <std::size_t kSets>
void deal_few(const double* given_shares, const double* limits, const Indices& out) {
  double shares[kSets];
  double taken[kSets] = {};
  std::copy_n(given_shares, kSets, shares);
  for (std::size_t i = 0; i < out.sets.size(); ++i) {
    const double samples = samples_before(i);
    double most = shares[0] * samples - taken[0];
    std::size_t furthest = 0;
#pragma GCC unroll 6
    for (std::size_t s = 1; s < kSets; ++s) {
      const double behind = shares[s] * samples - taken[s];
      if (behind > most) {
        most = behind;
        furthest = s;
      }
    }
    give(furthest, i, limits[furthest], taken[furthest], out);
  }
}

// Of two sets, without a branch: which comes next is as good as random to a processor.
template <>
void deal_few<2>(const double* shares, const double* limits, const Indices& out) {
  double taken[2] = {};
  std::int64_t numbers[2] = {};
  for (std::size_t i = 0; i < out.sets.size(); ++i) {
    const double samples = samples_before(i);
    const double first = shares[0] * samples - taken[0];
    const double second = shares[1] * samples - taken[1];
    const std::int64_t is_second = second > first ? 1 : 0;
    out.sets[i] = static_cast<std::int16_t>(is_second);
    out.numbers[i] = numbers[0] + is_second * (numbers[1] - numbers[0]);
    numbers[0] += 1 - is_second;
    numbers[1] += is_second;
    for (const std::size_t s : {0, 1}) {
      taken[s] = static_cast<double>(numbers[s]);
      if (taken[s] == limits[s]) taken[s] = kInfinity;
    }
  }
}

// deal_few() for a number of sets that is known only now.
template <std::size_t kMost>
void deal_few_of(const double* shares, const double* limits, std::size_t sets, const Indices& out) {
  if (sets == kMost) return deal_few<kMost>(shares, limits, out);
  if constexpr (kMost > 1) deal_few_of<kMost - 1>(shares, limits, sets, out);
}

// Four sets at a time: what follows compares the furthest of those in each lane, then the lanes.
constexpr std::size_t kLanes = 4;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Integers = std::int64_t __attribute__((vector_size(kLanes * sizeof(std::int64_t))));
constexpr Integers kLaneNumbers = {0, 1, 2, 3};

// Puts the greatest of the lanes, or the least, in all of them.
template <bool kGreatest, class Lanes>
[[gnu::always_inline]] inline void spread(Lanes& lanes) {
  Lanes other = __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1);
  lanes = (kGreatest ? other > lanes : other < lanes) ? other : lanes;
  other = __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2);
  lanes = (kGreatest ? other > lanes : other < lanes) ? other : lanes;
}

// For sets that fit the registers; `given` has kBlocks * kLanes shares, 0 behind the last set.
template <std::size_t kBlocks>
[[gnu::always_inline]] inline void deal_blocks(const double* given, const double* limits,
                                               std::size_t sets, const Indices& out) {
  Doubles shares[kBlocks];
  Doubles taken[kBlocks];
  double counts[kBlocks * kLanes] = {};  // the same, to be read one by one
  for (std::size_t s = 0; s < kBlocks * kLanes; ++s) {
    shares[s / kLanes][s % kLanes] = given[s];
    taken[s / kLanes][s % kLanes] = s < sets ? 0.0 : kInfinity;
  }
  for (std::size_t i = 0; i < out.sets.size(); ++i) {
    const double samples = samples_before(i);
    Doubles behind[kBlocks];
    for (std::size_t b = 0; b < kBlocks; ++b) behind[b] = shares[b] * samples - taken[b];
    Doubles best = behind[0];
    for (std::size_t b = 1; b < kBlocks; ++b) best = behind[b] > best ? behind[b] : best;
    spread<true>(best);
    Integers first = Integers{} + static_cast<std::int64_t>(kBlocks * kLanes);
    for (std::size_t b = kBlocks; b-- > 0;) {
      first = behind[b] == best ? kLaneNumbers + static_cast<std::int64_t>(b * kLanes) : first;
    }
    spread<false>(first);
    const auto furthest = static_cast<std::size_t>(first[0]);
    out.sets[i] = static_cast<std::int16_t>(furthest);
    out.numbers[i] = static_cast<std::int64_t>(counts[furthest]);
    counts[furthest] += 1;
    const double got = counts[furthest] == limits[furthest] ? kInfinity : 1.0;
    for (std::size_t b = 0; b < kBlocks; ++b) {
      const Integers numbers = kLaneNumbers + static_cast<std::int64_t>(b * kLanes);
      taken[b] += numbers == first ? Doubles{} + got : Doubles{};
    }
  }
}

// `shares` and `limits` are multiples of kLanes; those behind the last set are 0 and infinite.
BRIMFUL_HOT void deal_many(const std::vector<double>& shares, const std::vector<double>& limits,
                           std::size_t sets, const Indices& out) {
  const std::size_t n = shares.size();
  switch (n / kLanes) {
    case 2:
      return deal_blocks<2>(shares.data(), limits.data(), sets, out);
    case 3:
      return deal_blocks<3>(shares.data(), limits.data(), sets, out);
    case 4:
      return deal_blocks<4>(shares.data(), limits.data(), sets, out);
    default:
      break;
  }
  std::vector<double> taken(n, kInfinity);
  std::fill_n(taken.begin(), sets, 0.0);
  for (std::size_t i = 0; i < out.sets.size(); ++i) {
    const double samples = samples_before(i);
    Doubles most = Doubles{} - kInfinity;
    Integers at = {};
    for (std::size_t s = 0; s < n; s += kLanes) {
      Doubles share;
      Doubles got;
      std::memcpy(&share, shares.data() + s, sizeof share);
      std::memcpy(&got, taken.data() + s, sizeof got);
      const Doubles behind = share * samples - got;
      const Integers further = behind > most;
      most = further ? behind : most;
      at = further ? Integers{} + static_cast<std::int64_t>(s) : at;
    }
    Doubles best = most;
    spread<true>(best);
    Integers first = best == most ? at + kLaneNumbers : Integers{} + static_cast<std::int64_t>(n);
    spread<false>(first);
    const auto furthest = static_cast<std::size_t>(first[0]);
    give(furthest, i, limits[furthest], taken[furthest], out);
  }
}

void deal(std::vector<double> shares, std::vector<double> limits, const Indices& out) {
  const std::size_t sets = shares.size();
  if (sets <= kFew) return deal_few_of<kFew>(shares.data(), limits.data(), sets, out);
  const std::size_t whole = (sets + kLanes - 1) / kLanes * kLanes;
  shares.resize(whole, 0.0);
  limits.resize(whole, kInfinity);
  deal_many(shares, limits, sets, out);
}

void check_count(std::size_t sets) {
  if (sets > 0 && sets <= kMostSets) return;
  throw PlanError("a blend of " + std::to_string(sets) + " data sets; it has 1 to " +
                  std::to_string(kMostSets));
}

}  // namespace

void blend(std::span<const double> weights, std::span<std::int16_t> sets,
           std::span<std::int64_t> numbers) {
  check_count(weights.size());
  for (const double weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight)) {
      throw PlanError("a blend has a weight of " + std::to_string(weight) +
                      "; weights are above 0");
    }
  }
  deal({weights.begin(), weights.end()}, std::vector<double>(weights.size(), kInfinity),
       {sets, numbers});
}

void blend_exactly(std::span<const std::int64_t> sizes, std::span<std::int16_t> sets,
                   std::span<std::int64_t> numbers) {
  check_count(sizes.size());
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 1) {
      throw PlanError("a blend takes " + std::to_string(size) +
                      " samples of a data set; it takes at least 1");
    }
    sum += size;
  }
  if (sum != static_cast<std::int64_t>(sets.size())) {
    throw PlanError("a blend of " + std::to_string(sum) + " samples into arrays of " +
                    std::to_string(sets.size()));
  }
  std::vector<double> shares;
  std::vector<double> limits;
  for (const std::int64_t size : sizes) {
    limits.push_back(static_cast<double>(size));
    shares.push_back(limits.back() / static_cast<double>(sum));
  }
  deal(std::move(shares), std::move(limits), {sets, numbers});
}

}  // namespace brimful
