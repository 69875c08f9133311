// The checks of stock and patterns, and the bins made from patterns.
#include "plan/patterns.hpp"

#include <string>

#include "core/error.hpp"

namespace brimful {

void check_stock(const Stock& stock) {
  if (stock.sizes.size() != stock.counts.size()) {
    throw PlanError("there are " + std::to_string(stock.sizes.size()) + " sizes and " +
                    std::to_string(stock.counts.size()) + " counts; one for each size is expected");
  }
  for (std::size_t i = 0; i < stock.sizes.size(); ++i) {
    if (stock.sizes[i] < 1 || stock.sizes[i] > stock.capacity || stock.counts[i] < 1) {
      throw PlanError("size " + std::to_string(i) + " is " + std::to_string(stock.sizes[i]) + ", " +
                      std::to_string(stock.counts[i]) + " times; sizes from 1 to the capacity of " +
                      std::to_string(stock.capacity) + " are expected, each at least once");
    }
  }
  if (stock.max_items < 1) throw PlanError("a bin must hold at least one item");
}

void check_patterns(const PatternView& patterns, std::int64_t num_sizes) {
  const auto fail = [](const std::string& what) {
    throw PlanError("these are no patterns: " + what);
  };
  if (patterns.offsets.size() != patterns.times.size() + 1 || patterns.offsets.front() != 0 ||
      patterns.offsets.back() != static_cast<std::int64_t>(patterns.items.size()) ||
      patterns.copies.size() != patterns.items.size()) {
    fail("the offsets do not span the entries");
  }
  for (std::size_t p = 0; p < patterns.times.size(); ++p) {
    if (patterns.offsets[p] >= patterns.offsets[p + 1]) fail("one holds nothing");
    if (patterns.times[p] < 0 || patterns.times[p] >> 58 != 0) fail("one has no number of bins");
  }
  for (std::size_t e = 0; e < patterns.items.size(); ++e) {
    if (patterns.items[e] < 0 || patterns.items[e] >= num_sizes || patterns.copies[e] < 1) {
      fail("an entry names no size, or no copy of it");
    }
  }
}

}  // namespace brimful
