// The packers that take units in the order given, one at a time. Units must be surveyed before;
// bins and units are written to `packing`, with sizes for lengths.
#pragma once

#include <cstdint>

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// Each unit into the fullest bin with room.
void place_best_fit(const Units& units, std::int64_t num_units, Packing& packing);

}  // namespace brimful
