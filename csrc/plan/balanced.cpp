// By cost first, and where the capacity forbids that by size; then costly bins share with others.
#include "plan/balanced.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "plan/even_out.hpp"
#include "plan/lower_bound.hpp"
#include "plan/open_bins.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::string number(std::int64_t value) { return std::to_string(value); }

// The sum of the squared lengths of a unit's documents.
std::int64_t cost_of(const Unit& unit, const Units& units) {
  if (!units.grouped()) return unit.length * unit.length;
  std::int64_t cost = 0;
  std::int64_t document = unit.document;
  for (std::int64_t pieces = 0; pieces < unit.pieces; ++document) {
    const std::int64_t length = units.lengths()[at(document)];
    cost += length * length;
    pieces += length > 0 ? 1 : 0;
  }
  return cost;
}

void put(const WorkUnit& unit, std::int64_t number, WorkBin& bin) {
  bin.cost += unit.cost;
  bin.left -= unit.room;
  bin.units.push_back(number);
}

// Each unit into the bin with the least cost of those with room; nothing if one finds none.
std::optional<std::vector<WorkBin>> place_by_cost(const std::vector<WorkUnit>& units,
                                                  const Room& whole, std::int64_t num_bins) {
  std::vector<WorkBin> bins(at(num_bins), WorkBin{.left = whole});
  OpenBins open;
  for (std::int64_t b = 0; b < num_bins; ++b) open.insert(b, whole, 0);
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::int64_t b = open.take(units[i].room);
    if (b < 0) return std::nullopt;
    put(units[i], static_cast<std::int64_t>(i), bins[at(b)]);
    open.insert(b, bins[at(b)].left, bins[at(b)].cost);
  }
  return bins;
}

// Each unit, largest first, into the fullest bin with room.
std::vector<WorkBin> place_by_size(const std::vector<WorkUnit>& units, const Room& whole) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return units[a].room.slots > units[b].room.slots;
  });
  std::vector<WorkBin> bins;
  OpenBins open;
  for (const std::size_t i : order) {
    std::int64_t b = open.take(units[i].room);
    if (b < 0) {
      b = static_cast<std::int64_t>(bins.size());
      bins.push_back({.left = whole});
    }
    put(units[i], static_cast<std::int64_t>(i), bins[at(b)]);
    open.insert(b, bins[at(b)].left, bins[at(b)].left.slots);
  }
  for (WorkBin& bin : bins) std::sort(bin.units.begin(), bin.units.end());
  return bins;
}

// Gives each of `num_bins` bins a unit at least: the costliest ones pass on what they can.
void fill_empty_bins(const std::vector<WorkUnit>& units, const Room& whole, std::int64_t num_bins,
                     std::vector<WorkBin>& bins) {
  std::priority_queue<std::pair<std::int64_t, std::size_t>> costliest;
  const auto offer = [&](std::size_t b) {
    if (bins[b].units.size() > 1) costliest.emplace(bins[b].cost, b);
  };
  for (std::size_t b = 0; b < bins.size(); ++b) offer(b);
  while (bins.size() < at(num_bins)) {
    const std::size_t from = costliest.top().second;
    costliest.pop();
    const std::vector<std::int64_t> divided = std::move(bins[from].units);
    WorkBin halves[2] = {{.left = whole}, {.left = whole}};
    for (const std::int64_t unit : divided) {
      put(units[at(unit)], unit, halves[halves[1].cost < halves[0].cost ? 1 : 0]);
    }
    bins[from] = std::move(halves[0]);
    bins.push_back(std::move(halves[1]));
    offer(from);
    offer(bins.size() - 1);
  }
}

// Writes the bins, their units in order of arrival, and empty ones up to `num_bins`.
void write(const std::vector<Unit>& all, const std::vector<WorkUnit>& units,
           std::vector<WorkBin> bins, std::int64_t num_bins, Packing& packing) {
  for (WorkBin& bin : bins) {
    for (std::int64_t& unit : bin.units) unit = units[at(unit)].arrival;
    std::sort(bin.units.begin(), bin.units.end());
  }
  std::sort(bins.begin(), bins.end(),
            [](const WorkBin& a, const WorkBin& b) { return a.units.front() < b.units.front(); });
  packing.bin_offsets.push_back(0);
  for (const WorkBin& bin : bins) {
    for (const std::int64_t unit : bin.units) {
      packing.documents.push_back(all[at(unit)].document);
      packing.starts.push_back(all[at(unit)].start);
      packing.lengths.push_back(all[at(unit)].size);
    }
    packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size()));
  }
  packing.bin_offsets.resize(at(num_bins) + 1, packing.bin_offsets.back());
}

[[noreturn]] void throw_too_few(const Units& units, const PackOptions& options, Packing& packing) {
  const std::int64_t found = packing.num_bins();
  units.unfold(packing);
  throw PlanError("bins is " + number(*options.bins) + ", and no way was found to pack these " +
                  number(static_cast<std::int64_t>(packing.documents.size())) +
                  " pieces into as many: they need at least " +
                  number(lower_bound_bins(packing, options)) + ", and best fit decreasing takes " +
                  number(found) + ". Ask for more bins, or raise the capacity");
}

}  // namespace

void check_bins(const PackOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto check_range = [](const char* name, std::int64_t value) {
    if (value >= 1 && value <= kMost) return;
    throw PlanError(std::string(name) + " is " + number(value) + "; it must be from 1 to " +
                    number(kMost));
  };
  check_range("world_size", options.world_size);
  if (options.bins) check_range("bins", *options.bins);
  if (options.strategy != Strategy::kBalanced && (options.bins || options.world_size > 1)) {
    throw PlanError(
        "bins and world_size are for strategy=\"balanced\"; the other strategies find the number "
        "of bins themselves, and bf.balance deals these to ranks");
  }
  if (options.bins && *options.bins % options.world_size != 0) {
    throw PlanError("bins is " + number(*options.bins) + ", no multiple of world_size = " +
                    number(options.world_size) + ": give each rank as many bins as the others");
  }
}

void place_balanced(const Units& units, std::int64_t num_units, const PackOptions& options,
                    Packing& packing) {
  std::vector<Unit> all;
  all.reserve(at(num_units));
  units.each([&](const Unit& unit) { all.push_back(unit); });
  std::vector<WorkUnit> work;
  work.reserve(all.size());
  for (const Unit& unit : all) {
    work.push_back({.arrival = static_cast<std::int64_t>(work.size()),
                    .cost = cost_of(unit, units),
                    .room = {unit.size, unit.pieces, unit.resource}});
  }
  std::sort(work.begin(), work.end(), [](const WorkUnit& a, const WorkUnit& b) {
    return std::tuple(-a.cost, -a.room.slots, a.arrival) <
           std::tuple(-b.cost, -b.room.slots, b.arrival);
  });
  const Room whole{units.capacity(), units.max_segments(), units.resource_capacity()};

  std::vector<WorkBin> fitted;
  if (!options.bins) fitted = place_by_size(work, whole);
  const std::int64_t ranks = options.world_size;
  const std::int64_t num_bins =
      options.bins.value_or((static_cast<std::int64_t>(fitted.size()) + ranks - 1) / ranks * ranks);
  const std::int64_t used = std::min(num_bins, num_units);
  auto bins = place_by_cost(work, whole, used);
  if (!bins) {
    if (options.bins) fitted = place_by_size(work, whole);
    if (static_cast<std::int64_t>(fitted.size()) > num_bins) {
      const auto found = static_cast<std::int64_t>(fitted.size());
      write(all, work, std::move(fitted), found, packing);
      throw_too_few(units, options, packing);
    }
    fill_empty_bins(work, whole, used, fitted);
    bins = std::move(fitted);
  }
  even_out(work, whole, *bins);
  write(all, work, *std::move(bins), num_bins, packing);
}

}  // namespace brimful
