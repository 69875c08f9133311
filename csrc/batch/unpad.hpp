// Unpadding: tokens of padded rows end to end, and back. Columns move as bytes, an item a slot, so
// that any type and any trailing dimensions will do; whole runs of tokens are copied at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace brimful {

// Tokens that stand together in one row.
struct TokenRun {
  std::int64_t slot = 0;  // of the first, rows end to end
  std::int64_t tokens = 0;
};

// Where tokens stand in `rows` rows of `width` slots, and where they stand end to end.
struct TokenRuns {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::vector<TokenRun> runs;            // in the order of their slots
  std::vector<std::int32_t> cu_seqlens;  // [rows + 1], a segment a row; one more where there is a
                                         // tail, and then it ends at total
  std::int64_t num_tokens = 0;
  std::int64_t total = 0;       // num_tokens and the tail
  std::int64_t max_seqlen = 0;  // longest segment, the tail included
};

enum class Side : std::uint8_t { kLeft, kRight };

// Where mask [rows * width] is 1; it must be 0 elsewhere. The total is num_tokens rounded up to a
// multiple of `multiple`, and what is added is a tail: a segment of its own. Throws PlanError for a
// multiple below 1 and for more tokens than int32 counts.
TokenRuns find_tokens(std::span<const std::uint8_t> mask, std::int64_t rows, std::int64_t width,
                      std::int64_t multiple);

// The same without runs, of rows whose tokens were counted elsewhere.
TokenRuns count_tokens(std::span<const std::int64_t> lengths, std::int64_t width,
                       std::int64_t multiple);

// The first `rows` segments of cu_seqlens as rows of `width` slots with padding on one side. Later
// segments (a tail) are in the total only. Throws PlanError where cu_seqlens does not begin at 0,
// falls or has fewer segments, for a width that int32 does not count, and where a segment is
// longer.
TokenRuns lay_segments(std::span<const std::int64_t> cu_seqlens, std::int64_t rows,
                       std::int64_t width, Side padding);

// Throws PlanError unless the first segments of cu_seqlens are as long as the rows of `where`.
void check_segments(const TokenRuns& where, std::span<const std::int64_t> cu_seqlens);

// padded [rows * width] items of item_size bytes -> values [num_tokens].
void gather_tokens(const TokenRuns& where, const std::byte* padded, std::size_t item_size,
                   std::byte* values);

// values [num_tokens] -> padded [rows * width]; other slots are filled with `fill` over and over,
// whose size divides item_size.
void scatter_tokens(const TokenRuns& where, const std::byte* values, std::size_t item_size,
                    std::span<const std::byte> fill, std::byte* padded);

}  // namespace brimful
