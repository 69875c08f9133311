// Patterns: which sizes a bin holds, and how often, without saying which pieces. A plan of a
// million bins is a few thousand patterns and how many bins follow each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packer.hpp"
#include "plan/pieces.hpp"

namespace brimful {

// Compressed sparse rows: pattern p holds copies[e] times size number items[e], for the entries e
// from offsets[p] to offsets[p + 1].
struct Patterns {
  std::vector<std::int64_t> offsets{0};  // [patterns + 1]
  std::vector<std::int32_t> items;       // [entries] index into the sizes
  std::vector<std::int32_t> copies;      // [entries] at least 1

  void add(std::int64_t item, std::int64_t times) {
    items.push_back(static_cast<std::int32_t>(item));
    copies.push_back(static_cast<std::int32_t>(times));
  }
  void close() { offsets.push_back(static_cast<std::int64_t>(items.size())); }
};

// The same for arrays that somebody else made: offsets may point anywhere.
struct PatternView {
  std::span<const std::int64_t> offsets;
  std::span<const std::int32_t> items;
  std::span<const std::int32_t> copies;
  std::span<const std::int64_t> times;  // [patterns] bins that follow the pattern
};

// What patterns are made of: size number i may be in a bin at most counts[i] times, and a bin holds
// at most max_items of all sizes together.
struct Stock {
  std::span<const std::int32_t> sizes;   // [sizes] from 1 to the capacity
  std::span<const std::int64_t> counts;  // [sizes] at least 1
  std::int64_t capacity = 0;
  std::int64_t max_items = 0;
};

// Throws PlanError unless sizes and counts are as said above.
void check_stock(const Stock& stock);

// Throws PlanError unless offsets, items, copies and times fit together and name `num_sizes` sizes.
void check_patterns(const PatternView& patterns, std::int64_t num_sizes);

}  // namespace brimful
