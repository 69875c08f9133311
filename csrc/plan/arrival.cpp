// Best fit chooses all bins first, then sorts the units by bin.
#include "plan/arrival.hpp"

#include <algorithm>
#include <vector>

#include "plan/best_fit.hpp"
#include "plan/by_bin.hpp"
#include "plan/large.hpp"
#include "plan/pieces.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

struct Placed {
  std::vector<std::int64_t> bins;  // of each unit, in arrival order
  std::int64_t num_bins = 0;
};

// One unit after the other: the index knows a bin by its number.
template <class Index>
Placed choose_bins(Index index, const Units& units, std::int64_t num_units) {
  const auto capacity = static_cast<std::int32_t>(units.capacity());
  std::int32_t smallest = capacity;
  units.each([&](const Unit& unit) { smallest = std::min(smallest, unit.size); });
  const bool counted = units.max_segments() < PackOptions::kUnlimited;
  Placed placed;
  reserve_large(placed.bins, at(num_units));
  std::vector<std::int32_t> free;    // by bin
  std::vector<std::int64_t> pieces;  // by bin, where they are limited
  units.each([&](const Unit& unit) {
    std::int64_t bin = index.take(unit.size);
    if (bin < 0) {
      bin = static_cast<std::int64_t>(free.size());
      free.push_back(capacity);
      if (counted) pieces.push_back(0);
    }
    const std::int32_t left = free[at(bin)] -= unit.size;
    const bool closed = counted && ++pieces[at(bin)] == units.max_segments();
    if (left >= smallest && !closed) index.insert(bin, bin, left);
    placed.bins.push_back(bin);
  });
  placed.num_bins = static_cast<std::int64_t>(free.size());
  return placed;
}

}  // namespace

void place_best_fit(const Units& units, std::int64_t num_units, Packing& packing) {
  const std::int64_t capacity = units.capacity();
  const Placed placed = table_pays(capacity, num_units)
                            ? choose_bins(BestFitTable(capacity), units, num_units)
                            : choose_bins(BestFitBuckets(capacity, num_units), units, num_units);
  write_by_bin(placed.bins, placed.num_bins, [&](auto&& f) { units.each(f); }, packing);
}

}  // namespace brimful
