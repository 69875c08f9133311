// Packing by patterns that were found elsewhere: the sizes to find them for, and the bins that
// follow them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packer.hpp"
#include "plan/patterns.hpp"
#include "plan/pieces.hpp"

namespace brimful {

// The sizes of the units, largest first, and how many there are of each. Throws as pack() does, and
// PlanError where units of one size are not alike: with a resource, or with groups whose pieces
// max_segments counts.
std::vector<SizeGroup> unit_histogram(std::span<const std::int64_t> lengths, std::int64_t capacity,
                                      const PackOptions& options);

// Bins that follow the patterns, whose items number the sizes of unit_histogram(), in order; units
// of one size in order, or by seed. Throws PlanError unless each pattern fits a bin and all of them
// together hold every unit once.
Packing pack_by_patterns(std::span<const std::int64_t> lengths, std::int64_t capacity,
                         const PackOptions& options, const PatternView& patterns);

}  // namespace brimful
