// The columns of a batch and where they lie in a slot. Every column covers the same tokens: rows x
// seq_len ("rows"), or the bins end to end without their tails ("varlen"), in which case a slot is
// sized for full bins and a batch fills its beginning. Under context parallelism the columns hold
// the rank's share of them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "batch/quarantine.hpp"
#include "batch/zigzag.hpp"

namespace brimful {

enum class Column : std::uint8_t {
  kInputIds,     // int64
  kLabels,       // int64, -100 on the first token of a segment: the model shifts
  kShiftLabels,  // int64, pre-shifted, -100 on the last token of a segment that carries none
  kPositionIds,  // int64
  kDocumentIds,  // int32, from 0 in each row, -1 on tails and gaps
  kLossWeights,  // float32, 1 where there is a label, else 0
};

struct ColumnInfo {
  Column column;
  std::string_view name;
  std::string_view dtype;
  std::size_t size;
};

inline constexpr std::array<ColumnInfo, 6> kColumns{{
    {Column::kInputIds, "input_ids", "int64", 8},
    {Column::kLabels, "labels", "int64", 8},
    {Column::kShiftLabels, "shift_labels", "int64", 8},
    {Column::kPositionIds, "position_ids", "int64", 8},
    {Column::kDocumentIds, "document_ids", "int32", 4},
    {Column::kLossWeights, "loss_weights", "float32", 4},
}};

constexpr const ColumnInfo& column_info(Column column) {
  return kColumns[static_cast<std::size_t>(column)];
}

constexpr std::optional<Column> parse_column(std::string_view name) {
  for (const auto& info : kColumns) {
    if (info.name == name) return info.column;
  }
  return std::nullopt;
}

inline constexpr std::int64_t kIgnoreLabel = -100;

struct LayoutConfig {
  std::vector<Column> fields;
  bool varlen = false;
  bool keep_tail = true;  // a tail of pad tokens up to seq_len, as a segment of its own
  bool trimmed = false;   // Geometry::trim: rows are as long as the longest of them, not seq_len
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 0;
  std::int64_t pad_token_id = 0;
  bool continue_positions = false;  // a piece counts on from its place in the document, else from 0
  std::optional<std::int64_t> vocab_size;
  bool quarantine = true;    // bad pieces are put aside, else refused
  std::int64_t align = 1;    // slots of a piece are a multiple of it: behind its tokens is a gap
  bool carry_label = false;  // the last token of a cut piece has the document's next for a label
  std::optional<std::int64_t> max_segments;  // of a bin: cu_seqlens is padded to what that allows
  Zigzag zigzag;
};

// Segments that a batch has at most, tails included. A bin has no more pieces than slots.
std::int64_t most_segments(const LayoutConfig& config);

class Layout {
 public:
  // Throws PlanError for a batch too large to address, and for one that the ranks of a
  // context-parallel group cannot share.
  explicit Layout(LayoutConfig config);

  const LayoutConfig& config() const { return config_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  const std::vector<std::size_t>& offsets() const { return offsets_; }
  // Byte offset of field f (index into config().fields) in a slot; 64-byte aligned.
  std::size_t offset(std::size_t f) const { return offsets_[f]; }

 private:
  LayoutConfig config_;
  std::vector<std::size_t> offsets_;
  std::size_t slot_bytes_ = 0;
};

// What a filled slot holds besides its columns. One segment a piece, one a tail. All but `columns`
// speaks of the whole batch, also where the columns are a share of it.
struct BatchMeta {
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // slots a row of the columns; all of them for "varlen", of one row
  // [segments + 1] over the flattened batch, gaps and tails included; under `max_segments` it ends
  // in repeats of the total, so that it has as many entries in every batch.
  std::vector<std::int32_t> cu_seqlens;
  std::vector<std::int64_t> lengths;      // [segments] tokens; of a tail, its slots
  std::vector<std::int64_t> documents;    // [segments] document number, -1 for a tail
  std::vector<std::int64_t> starts;       // [segments] first token's place in its document
  std::int64_t max_seqlen = 0;            // slots of the longest segment
  std::int64_t num_tokens = 0;            // without tails
  std::int64_t num_items = 0;             // labels other than -100
  std::int64_t lost_labels = 0;           // planned, but the carried token is a bad one
  std::int64_t attention_work = 0;        // sum of squared lengths, without tails
  std::chrono::nanoseconds read_time{0};  // spent on getting bytes from files
  std::vector<BadPiece> bad;              // put aside; their segments are like tails
};

}  // namespace brimful
