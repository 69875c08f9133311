// Counting in batches of any loader: one look at each number, no memory beside it. For values of
// int64, int32 and uint8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace brimful {

// How many of the values of `rows` rows are not `number`; with `skip_first`, each row without its
// first value.
template <class T>
std::int64_t count_other(std::span<const T> values, std::size_t rows, T number, bool skip_first);

// A mask's nonzero entries by row, and whether all entries are 0 or 1; larger ones number
// documents.
struct MaskCounts {
  std::vector<std::int64_t> rows;
  bool binary = true;
};

template <class T>
MaskCounts count_mask(std::span<const T> values, std::size_t rows);

}  // namespace brimful
