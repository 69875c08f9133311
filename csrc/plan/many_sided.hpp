// Packing where a bin has room by more than its free slots: by a resource, or by pieces where
// groups have different numbers of them. Units of one size are not alike then, so each is placed by
// itself, in O(log n) steps.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// By best fit or by first fit, decreasing or in arrival order. Units must be surveyed before; bins
// and units are written to `packing`, with sizes for lengths.
void place_many_sided(const Units& units, std::int64_t num_units, Strategy strategy,
                      std::optional<std::uint64_t> seed, Packing& packing);

}  // namespace brimful
