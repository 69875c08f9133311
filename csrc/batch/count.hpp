// Counting in batches of any loader: one look at each number, no memory beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace brimful {

// How many of the values of `rows` rows are not `number`; with `skip_first`, each row without its
// first value.
template <class T>
std::int64_t count_other(std::span<const T> values, std::size_t rows, T number, bool skip_first) {
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  std::int64_t count = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = row * width + (skip_first ? 1 : 0); i < (row + 1) * width; ++i) {
      count += values[i] != number ? 1 : 0;
    }
  }
  return count;
}

// A mask's nonzero entries by row, and whether all entries are 0 or 1; larger ones number
// documents.
struct MaskCounts {
  std::vector<std::int64_t> rows;
  bool binary = true;
};

template <class T>
MaskCounts count_mask(std::span<const T> values, std::size_t rows) {
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  MaskCounts counts{.rows = std::vector<std::int64_t>(rows)};
  T all = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    std::int64_t count = 0;
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      count += values[i] != 0 ? 1 : 0;
      all |= values[i];
    }
    counts.rows[row] = count;
  }
  counts.binary = all == 0 || all == 1;
  return counts;
}

}  // namespace brimful
