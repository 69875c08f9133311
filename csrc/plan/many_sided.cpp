// Lists the units, orders them, and gives each the first bin of the tree that has room.
#include "plan/many_sided.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/by_bin.hpp"
#include "plan/open_bins.hpp"
#include "plan/seeded.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

Room room_of(const Unit& unit) { return {unit.size, unit.pieces, unit.resource}; }

// Exchanges units that are alike in every side.
void shuffle_alike(std::vector<Unit>& units, std::uint64_t seed) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sides = [&](std::size_t i) {
    return std::tuple(units[i].size, units[i].pieces, units[i].resource);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sides(a) < sides(b); });
  Shuffler shuffler(seed);
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && sides(order[end]) == sides(order[begin])) ++end;
    shuffler.shuffle(end - begin, [&](std::size_t i, std::size_t j) {
      std::swap(units[order[begin + i]], units[order[begin + j]]);
    });
  }
}

}  // namespace

void place_many_sided(const Units& units, std::int64_t num_units, Strategy strategy,
                      std::optional<std::uint64_t> seed, Packing& packing) {
  std::vector<Unit> all;
  all.reserve(at(num_units));
  units.each([&](const Unit& unit) { all.push_back(unit); });
  if (strategy != Strategy::kBestFit) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Unit& a, const Unit& b) { return a.size > b.size; });
    if (seed) shuffle_alike(all, *seed);
  }
  Room least = room_of(all.front());
  for (const Unit& unit : all) {
    least.slots = std::min<std::int64_t>(least.slots, unit.size);
    least.pieces = std::min(least.pieces, unit.pieces);
    least.resource = std::min(least.resource, unit.resource);
  }
  OpenBins open;
  const bool fullest_first = strategy != Strategy::kFirstFitDecreasing;
  std::vector<std::int64_t> bins;  // of each unit
  bins.reserve(all.size());
  std::int64_t num_bins = 0;
  for (const Unit& unit : all) {
    std::int64_t bin = open.take(room_of(unit));
    Room left{units.capacity(), units.max_segments(), units.resource_capacity()};
    if (bin < 0) {
      bin = num_bins++;
    } else {
      left = open.left(bin);
    }
    left -= room_of(unit);
    if (left.holds(least)) open.insert(bin, left, fullest_first ? left.slots : 0);
    bins.push_back(bin);
  }
  const auto each_unit = [&](auto&& f) {
    for (const Unit& unit : all) f(unit);
  };
  write_by_bin(bins, num_bins, each_unit, packing);
}

}  // namespace brimful
