// The least number of bins that any packing of these pieces needs: the bound L2 of Martello and
// Toth (Knapsack Problems, 1990, section 8.3), which is never below ceil(tokens / capacity). For a
// threshold k <= capacity / 2, pieces over capacity - k are alone in their bins if shorter pieces
// than k are left out; those over half the capacity need a bin each; the pieces from k up to half
// the capacity fit into the room beside the latter or need bins of their own.
#include <algorithm>

#include "plan/packer.hpp"
#include "plan/pieces.hpp"

namespace brimful {

std::int64_t lower_bound_bins(std::span<const std::int32_t> piece_lengths, std::int64_t capacity) {
  const std::vector<PieceGroup> groups =
      length_histogram(piece_lengths, capacity);  // longest first
  std::int64_t large = 0;                         // pieces over half the capacity
  std::int64_t room = 0;                          // beside those of them that are not alone
  std::int64_t small_tokens = 0;                  // in pieces from k up to half the capacity
  std::size_t alone = 0;  // the first group of large pieces with a neighbour
  std::size_t half = 0;   // the first group of small pieces
  for (; half < groups.size() && 2 * std::int64_t{groups[half].length} > capacity; ++half) {
    large += groups[half].count;
    room += groups[half].count * (capacity - groups[half].length);
  }
  for (std::size_t i = half; i < groups.size(); ++i) {
    small_tokens += groups[i].count * groups[i].length;
  }
  std::int64_t best = large;
  // k rises through the lengths of the small pieces, shortest first.
  for (std::size_t i = groups.size(); i-- > half;) {
    const std::int64_t k = groups[i].length;
    for (; alone < half && groups[alone].length > capacity - k; ++alone) {
      room -= groups[alone].count * (capacity - groups[alone].length);
    }
    const std::int64_t beyond = std::max<std::int64_t>(0, small_tokens - room);
    best = std::max(best, large + (beyond + capacity - 1) / capacity);
    small_tokens -= groups[i].count * k;
  }
  return best;
}

}  // namespace brimful
