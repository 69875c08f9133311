// Templates: patterns over buckets of neighbouring sizes instead of single sizes. A linear program
// over a hundred buckets is solved in a fraction of a second where one over thousands of sizes
// takes minutes; filling its templates with sizes that really are there, and really fit, loses next
// to nothing, because a bin with one item above its bucket's mean can take another one below.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/patterns.hpp"

namespace brimful {

struct Filled {
  Patterns patterns;                // over the stock's sizes; each fits a bin
  std::vector<std::int64_t> times;  // [patterns] at least 1
  std::vector<std::int64_t> left;   // [sizes] counts that no pattern uses
};

// Makes up to times[t] bins of template t, whose items are numbers of buckets; bucket b holds the
// sizes from starts[b] to starts[b + 1] of the stock, which fall. No bin is fuller than the
// capacity, or emptier than the template's mean sizes by more than `slack` tokens: a bin that waits
// for better partners, in a later round, wastes less. Stops after so many seconds.
Filled fill_templates(const Stock& stock, std::span<const std::int64_t> starts,
                      const PatternView& templates, std::int64_t slack, double seconds);

}  // namespace brimful
