// The checks of capacity, alignment, start token and least piece.
#include "plan/piece_rule.hpp"

#include <limits>
#include <string>

#include "core/error.hpp"

namespace brimful {

PieceRule::PieceRule(std::int64_t capacity, const PackOptions& options)
    : capacity_(capacity),
      payload_(capacity - (options.start_token ? 1 : 0)),
      min_piece_(options.min_piece),
      align_(static_cast<std::uint32_t>(options.align)),
      start_tokens_(options.start_token ? 1 : 0),
      overlong_(options.overlong) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (capacity < 1 || capacity > kMost) {
    throw PlanError("the capacity of a bin is " + std::to_string(capacity) +
                    " tokens; it must be from 1 to " + std::to_string(kMost));
  }
  if (options.align < 1 || capacity % options.align != 0) {
    throw PlanError("align is " + std::to_string(options.align) +
                    " tokens; it must be at least 1 and divide the capacity of " +
                    std::to_string(capacity) + ", so that full bins end on a multiple too");
  }
  if (payload_ < 1) {
    throw PlanError(
        "a capacity of 1 token leaves no room beside a start token: raise it to 2 or "
        "more, or leave out start_token");
  }
  const std::int64_t most = (payload_ + 1) / 2;
  if (min_piece_ < 1 || min_piece_ > most) {
    throw PlanError("min_piece is " + std::to_string(min_piece_) +
                    " tokens; it must be from 1 to " + std::to_string(most) +
                    ", half of what a bin takes of a document (" + std::to_string(payload_) +
                    "), so that any document can be cut that way");
  }
}

}  // namespace brimful
