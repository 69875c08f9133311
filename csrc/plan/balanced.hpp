// Bins with about the same attention work, as many as are asked for or as few as are found: for
// ranks and micro-batches that wait for each other, and so last as long as the costliest bin. The
// capacity and the other limits are as hard as ever.
#pragma once

#include "plan/packer.hpp"
#include "plan/units.hpp"

namespace brimful {

// Throws PlanError for a number of bins or ranks that cannot be, or that the strategy does not
// take.
void check_bins(const PackOptions& options);

// Costliest unit first, into the bin of the least cost that has room (the longest-processing-time
// rule under a capacity); where that finds no place for some unit, best fit decreasing. Then the
// costliest bins are evened out. Units must be surveyed before; bins and units are written to
// `packing`, with sizes for lengths. Bins stand in the order of their earliest unit; there are
// empty ones, at the end, only where units are fewer than bins. Throws PlanError when the units do
// not fit into the bins asked for.
void place_balanced(const Units& units, std::int64_t num_units, const PackOptions& options,
                    Packing& packing);

}  // namespace brimful
