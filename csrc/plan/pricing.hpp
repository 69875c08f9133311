// Pricing: which pattern's items are worth the most. The values are the duals of a linear program
// over patterns: a pattern worth more than 1 improves it, and what no pattern exceeds bounds the
// number of bins from below (Gilmore and Gomory 1961; Farley 1990).
//
// Values become whole numbers first, so that sums, comparisons and the bound are exact.
#pragma once

#include <cstdint>
#include <span>

#include "plan/patterns.hpp"

namespace brimful {

struct Priced {
  double best = 0;    // the most that a pattern is worth
  Patterns patterns;  // worth more than 1
};

// For each size the best of the patterns that hold it and none of the sizes behind it (before it,
// if `backwards`); of the sizes that share a group, neighbours, only the best one's pattern is
// given. Takes sizes x capacity bytes, and as many steps for each copy of a size that has too few
// to fill a bin; where max_items can bind, that often again.
Priced price_patterns(const Stock& stock, std::span<const double> values,
                      std::span<const std::int32_t> groups, bool backwards);

// A number of bins that no packing of this stock goes below, whatever the values. Sizes are looked
// at in steps of `grid` tokens, rounded down: a large step saves time and may lower the bound.
std::int64_t dual_bound(const Stock& stock, std::span<const double> values, std::int64_t grid);

}  // namespace brimful
