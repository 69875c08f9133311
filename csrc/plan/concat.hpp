// Concatenation: documents end to end in the order given, cut wherever a bin is full. Constraints
// close a bin early: no slot for another piece, too many pieces, too much of the resource; and a
// cut that would leave a piece shorter than the least is made earlier or not at all.
#pragma once

#include <cstdint>

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// Units must be surveyed before. Fills the counter of split documents too.
void place_end_to_end(const Units& units, Packing& packing);

// Pieces that it gives, in no more steps than there are documents and bins shared by some of them.
std::int64_t count_end_to_end(const Units& units);

}  // namespace brimful
