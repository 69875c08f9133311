// Built without contracting a * b - c into one rounding (CMakeLists.txt): ties would fall
// otherwise.
#include "plan/blend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

constexpr std::size_t kMostSets = 32766;  // they are numbered in 16 bits
constexpr std::size_t kLanes = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far sets are behind their shares. A multiple of kLanes; those that fill it up, and those that
// have no samples left, are never behind.
struct Sets {
  std::vector<double> shares;
  std::vector<double> taken;  // samples so far
  std::vector<double> limits;
  std::vector<std::int16_t> ids;

  std::size_t size() const { return shares.size(); }
  void clear() {
    for (auto* column : {&shares, &taken, &limits}) column->clear();
    ids.clear();
  }
  void add(double share, double taken_so_far, double limit, std::int16_t id) {
    shares.push_back(share);
    taken.push_back(taken_so_far);
    limits.push_back(limit);
    ids.push_back(id);
  }
  void fill_up() {
    while (size() % kLanes != 0) add(0, kInfinity, kInfinity, -1);
  }
};

struct Stretch {
  std::size_t samples = 0;   // dealt
  double least = kInfinity;  // that a set that got one of them was behind
};

// Deals samples first .. end to these sets; stops before one that would go to a set less than
// `floor` behind.
BRIMFUL_HOT Stretch deal(Sets& sets, std::size_t first, std::size_t end, double floor,
                         std::int16_t* ids, std::int64_t* numbers) {
  std::vector<double> behind(sets.size());
  const std::size_t n = sets.size();
  const double* const shares = sets.shares.data();
  double* const taken = sets.taken.data();
  Stretch stretch;
  for (std::size_t i = first; i < end; ++i) {
    const double samples = std::max(static_cast<double>(i), 1.0);
    double lanes[kLanes];
    std::fill_n(lanes, kLanes, -kInfinity);
    for (std::size_t s = 0; s < n; s += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double share = shares[s + lane] * samples;
        const double by = share - taken[s + lane];
        behind[s + lane] = by;
        lanes[lane] = by > lanes[lane] ? by : lanes[lane];
      }
    }
    double most = lanes[0];
    for (const double lane : lanes) most = lane > most ? lane : most;
    if (most < floor) break;
    std::size_t furthest = 0;
    while (behind[furthest] != most) ++furthest;
    ids[i] = sets.ids[furthest];
    numbers[i] = static_cast<std::int64_t>(taken[furthest]);
    taken[furthest] += 1;
    if (taken[furthest] == sets.limits[furthest]) taken[furthest] = kInfinity;
    stretch.least = std::min(stretch.least, most);
    ++stretch.samples;
  }
  return stretch;
}

// A stretch of samples looks only at sets that can be as far behind by its end as the furthest one
// is all along. That they are the right ones is seen from what they were behind; else all are
// looked at.
void deal_all(std::span<const double> shares, std::span<const double> limits,
              std::span<std::int16_t> ids, std::span<std::int64_t> numbers) {
  const std::size_t n = shares.size();
  const std::size_t stretch = n <= 2 * kLanes ? ids.size() : std::max<std::size_t>(16, n / 8);
  std::vector<double> taken(n);
  double floor = -kInfinity;
  Sets sets;
  for (std::size_t first = 0; first < ids.size();) {
    const std::size_t end = std::min(ids.size(), first + stretch);
    sets.clear();
    for (std::size_t s = 0; s < n; ++s) {
      if (shares[s] * static_cast<double>(end) - taken[s] < floor) continue;
      sets.add(shares[s], taken[s], limits[s], static_cast<std::int16_t>(s));
    }
    sets.fill_up();
    const Stretch dealt = deal(sets, first, end, floor, ids.data(), numbers.data());
    for (std::size_t s = 0; s < sets.size() && sets.ids[s] >= 0; ++s) {
      taken[static_cast<std::size_t>(sets.ids[s])] = sets.taken[s];
    }
    constexpr double kLeeway = 1.0 / 16;
    floor = first + dealt.samples == end ? dealt.least - kLeeway : -kInfinity;
    first += dealt.samples;
  }
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
  deal_all(weights, std::vector<double>(weights.size(), kInfinity), sets, numbers);
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
  deal_all(shares, limits, sets, numbers);
}

}  // namespace brimful
