#include "batch/read_pieces.hpp"

#include <string>

#include "core/error.hpp"

namespace brimful {

StoredPiece stored(const Segment& segment) {
  const std::int64_t behind_first = segment.tokens_to_read() - 1;
  const std::int64_t effective =
      segment.mask == nullptr ? behind_first : columns::count_set(segment.mask + 1, behind_first);
  return {*segment.ref,   segment.document, segment.start, segment.length,
          segment.values, segment.mask,     effective};
}

bool loses_label(const Segment& segment, std::optional<std::int64_t> vocab_size) {
  if (!segment.carries || (segment.mask != nullptr && segment.mask[segment.length] == 0)) {
    return false;
  }
  const TokenType type = segment.store->type;
  const std::size_t behind = static_cast<std::size_t>(segment.length) * item_size(type);
  return is_bad(type, segment.values + behind, vocab_size);
}

void check_count(std::int64_t found, std::int64_t planned) {
  if (found == planned) return;
  throw FormatError("a loss mask has " + std::to_string(found) +
                    " trained tokens in this batch where its stored counts say " +
                    std::to_string(planned) + "; write the loss masks (*.loss.bin) again");
}

}  // namespace brimful
