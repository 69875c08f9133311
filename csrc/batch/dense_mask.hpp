// Dense attention masks, [rows, L, L]: a value for each pair of query and key of a row. Pure
// functions. Work goes by slots and by pairs that are seen, never by documents times slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/attention_rule.hpp"

namespace brimful {

// Values as bits, each item_size bytes: 1, 2, 4 or 8.
struct MaskValues {
  std::size_t item_size;
  std::uint64_t seen;
  std::uint64_t unseen;
};

// out [rows, L, L] items. With `cleared` it holds `unseen` everywhere already. Throws PlanError for
// a bad cu_seqlens, rows or rule.
void write_dense_mask(std::span<const std::int32_t> cu_seqlens, std::int64_t rows,
                      const AttentionRule& rule, const MaskValues& values, bool cleared,
                      std::byte* out);

}  // namespace brimful
