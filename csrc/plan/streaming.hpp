// Streaming: bins from a buffer of units in arrival order. A bin is the oldest unit and an exact
// fill: the subset of the buffer that adds up to the free space, or as near to it as any does.
//
// Order is kept. With B the size of the buffer, every unit placed before unit i arrived less than
// 3B after it, because a unit enters the buffer only when the oldest one waiting arrived less than
// 3B before; and at most B - 1 units that arrived before i are placed after it.
#pragma once

#include <cstdint>

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// `buffer` is the number of units to choose from, at least 1. Units must be surveyed before; bins
// and units are written to `packing`, with sizes for lengths and the units of a bin in arrival
// order.
void place_streaming(const Units& units, std::int64_t buffer, Packing& packing);

}  // namespace brimful
