// Flattens documents in memory into one varlen batch: their tokens end to end, and the columns that
// a loader's batch has. A document takes a multiple of `align` slots, the batch a multiple of
// `multiple`; what is added at its end is a tail, a segment of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "batch/layout.hpp"
#include "core/types.hpp"

namespace brimful {

struct FlatDocument {
  TokenType type = TokenType::kI64;
  const std::byte* values = nullptr;  // [length] of `type`
  std::int64_t length = 0;
  const std::uint8_t* mask = nullptr;  // [length], 0: not trained; null: every token is
  TokenType label_type = TokenType::kI64;
  const std::byte* labels = nullptr;  // [length] of `label_type`; null: the tokens
};

struct FlattenOptions {
  std::vector<Column> fields;
  std::int64_t pad_token_id = 0;
  std::int64_t multiple = 1;
  std::int64_t align = 1;
  std::optional<std::int64_t> max_segments;  // cu_seqlens repeats its end up to as many, tail too
};

// A batch in memory of its own. Documents without a token are passed over.
struct Flat {
  Layout layout;
  std::unique_ptr<std::byte[]> slot;
  BatchMeta meta;  // `documents` are places in what was given
};

// Throws FormatError where no document has a token and for a token below 0, PlanError for more
// segments than there is room for, a multiple or align below 1 and more slots than int32 counts.
Flat flatten(std::span<const FlatDocument> documents, const FlattenOptions& options);

}  // namespace brimful
