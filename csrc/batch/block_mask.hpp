// FlexAttention's block mask straight from cu_seqlens: which key blocks a block of queries needs
// (kv lists) and which query blocks need a block of keys (q lists), those that every pair of is
// seen (full) apart from those that a mask function must look into (partial).
//
// Nothing is transposed and no pair is looked at. For a block of queries the keys of all documents
// but the first one that meets it are one range, and the first adds its prefix; for a block of keys
// the queries are one range. So rows and columns are written independently, in closed form.
// Work goes by blocks written and documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/attention_rule.hpp"

namespace brimful {

struct BlockShape {
  std::int64_t q = 128;   // queries of a block, slots
  std::int64_t kv = 128;  // keys of a block, slots
};

// Lists of blocks, one after the other with room for all: counts [lists], indices [lists, room].
struct BlockLists {
  std::int32_t* counts;
  std::int32_t* indices;  // ascending; behind the count they stay as they were
};

// Of `rows` batches of R query blocks and C key blocks: kv lists [rows * R] with room for C, q
// lists [rows * C] with room for R.
struct BlockMask {
  BlockLists kv;
  BlockLists full_kv;
  BlockLists q;
  BlockLists full_q;
};

// Blocks that cover L slots; the last one may be broken. Throws PlanError for a size below 1.
std::int64_t count_blocks(std::int64_t slots, std::int64_t size);

// The rule must be causal. Throws PlanError for a bad cu_seqlens, rows, rule or block size.
void write_block_mask(std::span<const std::int32_t> cu_seqlens, std::int64_t rows,
                      const AttentionRule& rule, const BlockShape& shape, const BlockMask& out);

}  // namespace brimful
