// The packers that take documents in the order given. Lengths must be surveyed before; bins and
// pieces are written to `packing`.
#pragma once

#include <cstdint>
#include <span>

#include "plan/packer.hpp"

namespace brimful {

// Documents end to end, cut where a bin is full.
void place_end_to_end(std::span<const std::int64_t> lengths, Packing& packing);

// Each piece into the fullest bin with room.
void place_best_fit(std::span<const std::int64_t> lengths, Overlong overlong,
                    std::int64_t num_pieces, Packing& packing);

}  // namespace brimful
