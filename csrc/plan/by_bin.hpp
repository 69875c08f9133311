// From the bin of each unit to bins of units: a counting sort, for packers that choose bins one
// unit at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// bins[i] is that of the i-th unit that each_unit(f) gives to f(const Unit&). The units of a bin
// keep their order; they are written with sizes for lengths.
template <class EachUnit>
void write_by_bin(std::span<const std::int64_t> bins, std::int64_t num_bins, EachUnit&& each_unit,
                  Packing& packing) {
  const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
  packing.bin_offsets.assign(at(num_bins + 1), 0);
  for (const std::int64_t bin : bins) ++packing.bin_offsets[at(bin + 1)];
  std::partial_sum(packing.bin_offsets.begin(), packing.bin_offsets.end(),
                   packing.bin_offsets.begin());
  packing.documents.resize(bins.size());
  packing.starts.resize(bins.size());
  packing.lengths.resize(bins.size());
  UnsetVector<std::int64_t> places = packing.bin_offsets;  // of each bin's next unit
  auto bin = bins.begin();
  each_unit([&](const Unit& unit) {
    const std::size_t place = at(places[at(*bin++)]++);
    packing.documents[place] = unit.document;
    packing.starts[place] = unit.start;
    packing.lengths[place] = unit.size;
  });
}

}  // namespace brimful
