#include "batch/read_pieces.hpp"

#include <string>

#include "core/error.hpp"

namespace brimful {

StoredPiece stored(const Segment& segment) {
  const std::int64_t effective = segment.mask == nullptr
                                     ? segment.length - 1
                                     : columns::count_set(segment.mask + 1, segment.length - 1);
  return {*segment.ref,   segment.document, segment.start, segment.length,
          segment.values, segment.mask,     effective};
}

void check_count(std::int64_t found, std::int64_t planned) {
  if (found == planned) return;
  throw FormatError("a loss mask has " + std::to_string(found) +
                    " trained tokens in this batch where its stored counts say " +
                    std::to_string(planned) + "; write the loss masks (*.loss.bin) again");
}

}  // namespace brimful
