// What every slot of a batch says, from cu_seqlens alone: places, document numbers, labels,
// weights. Pure functions; `out` has a place a slot. Nothing is guessed back from token values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/attention_rule.hpp"
#include "batch/layout.hpp"
#include "core/types.hpp"

namespace brimful {

// The segments of a batch, and how many of the slots of each are real.
class Segments {
 public:
  // Segments from num_documents on are tails; `lengths` [segments], when there, are the real tokens
  // of each, and what is over is its gap. Throws PlanError for a bad cu_seqlens, counts that do not
  // fit it, and real tokens that a segment has no room for.
  Segments(std::span<const std::int32_t> cu_seqlens, std::int64_t num_documents,
           std::span<const std::int64_t> lengths);

  std::int64_t size() const { return static_cast<std::int64_t>(cu_seqlens_.size()) - 1; }
  std::int64_t total() const { return cu_seqlens_.back(); }
  std::int64_t begin(std::int64_t i) const { return cu_seqlens_[static_cast<std::size_t>(i)]; }
  std::int64_t end(std::int64_t i) const { return cu_seqlens_[static_cast<std::size_t>(i) + 1]; }
  // Where its real tokens end: at its begin for a tail.
  std::int64_t real_end(std::int64_t i) const {
    if (i >= num_documents_) return begin(i);
    return lengths_.empty() ? end(i) : begin(i) + lengths_[static_cast<std::size_t>(i)];
  }

 private:
  std::span<const std::int32_t> cu_seqlens_;
  std::int64_t num_documents_;
  std::span<const std::int64_t> lengths_;
};

// Tokens with what decides which of them are trained.
struct LabelSource {
  TokenType type;
  const std::byte* ids;           // [total] of `type`
  const std::uint8_t* loss_mask;  // [total], 0: not trained; null: all are
};

// From starts[i] (null: 0) upwards in each segment, gaps and tails included.
void write_position_ids(std::span<const std::int32_t> cu_seqlens, const std::int64_t* starts,
                        std::int64_t* out);

// The number of the segment, -1 on gaps and tails.
void write_document_ids(const Segments& segments, std::int32_t* out);

// Where things are that a slot's query looks at, counted from its row's begin; each may be null.
struct Bounds {
  std::int32_t* begin;       // of its segment
  std::int32_t* end;         // of its segment
  std::int32_t* prefix_end;  // of its segment's prefix: `begin` where there is none
};

// `rows` rows of equal size, with prefixes of the rule.
void write_bounds(std::span<const std::int32_t> cu_seqlens, std::int64_t rows,
                  const AttentionRule& rule, const Bounds& out);

// The token itself; kIgnoreLabel on the first token of a segment, gaps, tails and where the loss
// mask is 0.
void write_labels(const Segments& segments, const LabelSource& source, std::int64_t* out);

// The next token under the same rules; the last token of a segment gets next_tokens[i] (null:
// kIgnoreLabel).
void write_shift_labels(const Segments& segments, const LabelSource& source,
                        const std::int64_t* next_tokens, std::int64_t* out);

// 1 / n on each of the n slots of a segment whose label is not kIgnoreLabel, else 0.
void write_loss_weights(std::span<const std::int32_t> cu_seqlens, const std::int64_t* labels,
                        float* out);

}  // namespace brimful
