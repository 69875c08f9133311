// Concatenation: documents end to end in the order given, cut wherever a bin is full. Constraints
// close a bin early: no slot for another piece, too many pieces, too much of the resource; and a
// cut that would leave a piece shorter than the least is made earlier or not at all.
#pragma once

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// Counts pieces, in as many steps as there are documents and bins that are not filled by one alone,
// and fills the counter of split documents.
UnitCounts survey_end_to_end(const Units& units, Packing& packing);

void place_end_to_end(const Units& units, Packing& packing);

}  // namespace brimful
