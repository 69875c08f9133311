// The bound of the sizes is L2 of Martello and Toth (Knapsack Problems, 1990, section 8.3), which
// is never below ceil(slots / capacity). For a threshold k <= capacity / 2, units over capacity - k
// are alone in their bins if smaller units than k are left out; those over half the capacity need a
// bin each; the units from k up to half the capacity fit into the room beside the latter or need
// bins of their own.
#include "plan/lower_bound.hpp"

#include <algorithm>
#include <vector>

#include "plan/piece_rule.hpp"
#include "plan/pieces.hpp"

namespace brimful {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a == 0 ? 0 : (a - 1) / b + 1; }

std::int64_t bound_by_resource(const Packing& packing, std::span<const std::int64_t> resource,
                               std::int64_t capacity) {
  unsigned __int128 total = 0;
  for (const std::int64_t document : packing.documents) {
    total += static_cast<std::uint64_t>(resource[static_cast<std::size_t>(document)]);
  }
  if (total == 0) return 0;
  return static_cast<std::int64_t>((total - 1) / static_cast<std::uint64_t>(capacity)) + 1;
}

// A unit's pieces are neighbours in their bin.
std::vector<std::int32_t> sizes_of_groups(const Packing& packing, const PieceRule& rule,
                                          std::span<const std::int64_t> groups) {
  std::vector<std::int32_t> sizes;
  const auto group_of = [&](std::int64_t piece) {
    return groups[static_cast<std::size_t>(packing.documents[static_cast<std::size_t>(piece)])];
  };
  for (std::size_t bin = 1; bin < packing.bin_offsets.size(); ++bin) {
    const std::int64_t begin = packing.bin_offsets[bin - 1];
    for (std::int64_t piece = begin; piece < packing.bin_offsets[bin]; ++piece) {
      if (piece == begin || group_of(piece) != group_of(piece - 1)) sizes.push_back(0);
      sizes.back() += rule.size(packing.lengths[static_cast<std::size_t>(piece)]);
    }
  }
  return sizes;
}

}  // namespace

std::int64_t lower_bound_bins(const Packing& packing, const PackOptions& options) {
  const PieceRule rule(packing.capacity, options);
  std::int64_t best = 0;
  if (options.groups) {
    best = lower_bound_bins(sizes_of_groups(packing, rule, *options.groups), packing.capacity);
  } else if (rule.exact()) {
    best = lower_bound_bins(packing.lengths, packing.capacity);
  } else {
    std::vector<std::int32_t> sizes(packing.lengths.size());
    std::transform(packing.lengths.begin(), packing.lengths.end(), sizes.begin(),
                   [&](std::int32_t length) { return rule.size(length); });
    best = lower_bound_bins(sizes, packing.capacity);
  }
  const auto pieces = static_cast<std::int64_t>(packing.documents.size());
  best = std::max(best, ceil_div(pieces, options.max_segments));
  if (options.resource) {
    best = std::max(best, bound_by_resource(packing, *options.resource, options.resource_capacity));
  }
  return best;
}

std::int64_t lower_bound_bins(std::span<const std::int32_t> sizes, std::int64_t capacity) {
  const std::vector<PieceGroup> groups = size_histogram(sizes, capacity);  // largest first
  std::int64_t large = 0;        // units over half the capacity
  std::int64_t room = 0;         // beside those of them that are not alone
  std::int64_t small_slots = 0;  // of units from k up to half the capacity
  std::size_t alone = 0;         // the first group of large units with a neighbour
  std::size_t half = 0;          // the first group of small units
  for (; half < groups.size() && 2 * std::int64_t{groups[half].size} > capacity; ++half) {
    large += groups[half].count;
    room += groups[half].count * (capacity - groups[half].size);
  }
  for (std::size_t i = half; i < groups.size(); ++i) {
    small_slots += groups[i].count * groups[i].size;
  }
  std::int64_t best = large;
  // k rises through the sizes of the small units, smallest first.
  for (std::size_t i = groups.size(); i-- > half;) {
    const std::int64_t k = groups[i].size;
    for (; alone < half && groups[alone].size > capacity - k; ++alone) {
      room -= groups[alone].count * (capacity - groups[alone].size);
    }
    const std::int64_t beyond = std::max<std::int64_t>(0, small_slots - room);
    best = std::max(best, large + (beyond + capacity - 1) / capacity);
    small_slots -= groups[i].count * k;
  }
  return best;
}

}  // namespace brimful
