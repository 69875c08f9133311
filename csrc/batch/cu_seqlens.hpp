// cu_seqlens from document lengths, and the check that every reader of one relies on. int32
// [segments + 1]: where each segment begins, from 0 to the number of slots. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace brimful {

inline constexpr std::int64_t kMostSlots = std::numeric_limits<std::int32_t>::max();

struct CuSeqlensOptions {
  std::optional<std::int64_t> total;         // slots of a row: what is over is a segment, its tail
  std::optional<std::int64_t> max_segments;  // repeats the last offset up to this many segments
  std::int64_t align = 1;                    // each document takes a multiple of this many slots
  bool keep_empty = false;                   // documents of no tokens become segments of no slots
};

// Rows end to end: row r holds the next row_sizes[r] of the lengths, and its start is a boundary.
// Throws PlanError for a negative length, more slots than int32 counts, documents longer together
// than their row, and more segments than there is room for.
std::vector<std::int32_t> make_cu_seqlens(std::span<const std::int64_t> lengths,
                                          std::span<const std::int64_t> row_sizes,
                                          const CuSeqlensOptions& options);

// Throws PlanError unless it begins at 0 and never falls.
void check_cu_seqlens(std::span<const std::int32_t> cu_seqlens);

// Throws PlanError unless, besides, `rows` rows of equal size begin at boundaries. Returns the
// slots of a row.
std::int64_t check_rows(std::span<const std::int32_t> cu_seqlens, std::int64_t rows);

}  // namespace brimful
