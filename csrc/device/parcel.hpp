// A parcel: one batch as it travels to a device. It holds tokens as narrow as they are stored and
// what tells the segments; the columns are made of it there (expand.hpp). All its arrays lie in one
// block of memory, so that a single copy moves them, and the block is as long as this batch needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/host_device.hpp"

namespace brimful::device {

// One batch of the whole context-parallel group: every rank gets all tokens and keeps its own.
// Segments may be empty; some at the end pad cu_seqlens to a fixed size.
struct Parcel {
  std::int64_t segments = 0;
  std::int64_t total = 0;         // slots: real tokens, tails and gaps; at most 2^31 - 1
  std::int64_t row = 0;           // slots of a row, which divides total; total for "varlen"
  std::int32_t token_bytes = 2;   // 2, 4 or 8
  std::int64_t pad_token_id = 0;  // the input id of tails and gaps, whatever `tokens` holds there

  const std::int32_t* cu_seqlens = nullptr;    // [segments + 1] from 0 to total, gaps included
  const std::int32_t* lengths = nullptr;       // [segments] real tokens; slots past them are a gap
  const std::int32_t* document_ids = nullptr;  // [segments] from 0 in each row; -1 for a tail and a
                                               // bad piece
  const std::int64_t* first_positions = nullptr;  // [segments] null: 0 for all
  const std::int64_t* next_tokens = nullptr;  // [segments] shift label of the last real token, -100
                                              // for none; null: none has one
  const std::uint32_t* label_bits = nullptr;  // [ceil(total / 32)] slot t is bit t % 32 of t / 32:
                                              // whether it has a label under "labels", which the
                                              // first of a segment never has; null: all others do
  const std::byte* tokens = nullptr;          // [total] unsigned; no batch holds a negative token
};

// What a parcel holds, which says how long its block is and where the arrays lie.
struct ParcelShape {
  std::int64_t segments = 0;
  std::int64_t total = 0;
  std::int32_t token_bytes = 2;
  bool first_positions = false;
  bool next_tokens = false;
  bool label_bits = false;
};

// Byte offsets of the arrays from the beginning of the block, each a multiple of 16, in the order
// of `Parcel`. Those that are not there have the offset of the next one.
struct ParcelOffsets {
  std::int64_t cu_seqlens = 0;
  std::int64_t lengths = 0;
  std::int64_t document_ids = 0;
  std::int64_t first_positions = 0;
  std::int64_t next_tokens = 0;
  std::int64_t label_bits = 0;
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;  // of the block
};

constexpr ParcelOffsets parcel_offsets(const ParcelShape& shape) {
  constexpr std::int64_t kAlign = 16;
  ParcelOffsets at;
  const auto take = [&at](std::int64_t count, std::int64_t size) {
    const std::int64_t begin = at.bytes;
    at.bytes += divide_up(count * size, kAlign) * kAlign;
    return begin;
  };
  at.cu_seqlens = take(shape.segments + 1, 4);
  at.lengths = take(shape.segments, 4);
  at.document_ids = take(shape.segments, 4);
  at.first_positions = take(shape.first_positions ? shape.segments : 0, 8);
  at.next_tokens = take(shape.next_tokens ? shape.segments : 0, 8);
  at.label_bits = take(shape.label_bits ? divide_up<std::int64_t>(shape.total, 32) : 0, 4);
  at.tokens = take(shape.total, shape.token_bytes);
  return at;
}

// The parcel whose block begins at `block`, a multiple of 16, in whichever memory that is: it is
// not touched. The caller sets pad_token_id, and row where there are several.
inline Parcel parcel_at(const ParcelShape& shape, const std::byte* block) {
  const ParcelOffsets at = parcel_offsets(shape);
  Parcel parcel;
  parcel.segments = shape.segments;
  parcel.total = shape.total;
  parcel.row = shape.total;
  parcel.token_bytes = shape.token_bytes;
  parcel.cu_seqlens = reinterpret_cast<const std::int32_t*>(block + at.cu_seqlens);
  parcel.lengths = reinterpret_cast<const std::int32_t*>(block + at.lengths);
  parcel.document_ids = reinterpret_cast<const std::int32_t*>(block + at.document_ids);
  if (shape.first_positions) {
    parcel.first_positions = reinterpret_cast<const std::int64_t*>(block + at.first_positions);
  }
  if (shape.next_tokens) {
    parcel.next_tokens = reinterpret_cast<const std::int64_t*>(block + at.next_tokens);
  }
  if (shape.label_bits) {
    parcel.label_bits = reinterpret_cast<const std::uint32_t*>(block + at.label_bits);
  }
  parcel.tokens = block + at.tokens;
  return parcel;
}

// The columns to write, [total / context-parallel size] each; those that are null are not asked
// for. Values and dtypes are those of fill.cpp.
struct Expanded {
  std::int64_t* input_ids = nullptr;
  std::int64_t* labels = nullptr;
  std::int64_t* shift_labels = nullptr;
  std::int64_t* position_ids = nullptr;
  std::int32_t* document_ids = nullptr;
  float* loss_weights =
      nullptr;  // of the shifted labels where weigh_shifted is set, else of labels
  std::int32_t* segment_begin =
      nullptr;                          // where the slot's segment begins and ends in its row, for
  std::int32_t* segment_end = nullptr;  // masks that are functions of a slot
  bool weigh_shifted = false;
};

// Which slots are this rank's: two of 2 * size equal parts, the rank-th from either end, of every
// segment (per_document; segments are multiples of 2 * size) or of every row (rows are).
struct ContextParallel {
  std::int32_t size = 1;
  std::int32_t rank = 0;
  bool per_document = false;
};

}  // namespace brimful::device
