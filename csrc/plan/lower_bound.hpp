// The least number of bins that any packing of some units needs.
#pragma once

#include <cstdint>
#include <span>

#include "plan/packer.hpp"

namespace brimful {

// For units of these sizes, largest first, in bins of this capacity.
std::int64_t lower_bound_bins(std::span<const SizeGroup> sizes, std::int64_t capacity);

// For the units of a packing made with these options: by their sizes, by the pieces that a bin may
// hold, and by the resource.
std::int64_t lower_bound_bins(const Packing& packing, const PackOptions& options);

}  // namespace brimful
