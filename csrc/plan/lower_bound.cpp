// The bound of the sizes is L2 of Martello and Toth (Knapsack Problems, 1990, section 8.3), which
// is never below ceil(slots / capacity). For a threshold k <= capacity / 2, units over capacity - k
// are alone in their bins if smaller units than k are left out; those over half the capacity need a
// bin each; the units from k up to half the capacity fit into the room beside the latter or need
// bins of their own.
#include "plan/lower_bound.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "plan/piece_rule.hpp"
#include "plan/pieces.hpp"

namespace brimful {
namespace {

std::int64_t ceil_div(unsigned __int128 a, std::int64_t b) {
  if (a == 0) return 0;
  return static_cast<std::int64_t>((a - 1) / static_cast<std::uint64_t>(b)) + 1;
}

std::int64_t bound_of_sizes(std::span<const std::int32_t> sizes, std::int64_t capacity) {
  return lower_bound_bins(size_histogram(sizes, capacity), capacity);
}

// What units take of one side of a bin, which has `capacity` of it.
std::int64_t bound(const std::vector<std::int64_t>& taken, std::int64_t capacity) {
  if (capacity > std::numeric_limits<std::int32_t>::max()) {
    unsigned __int128 total = 0;
    for (const std::int64_t amount : taken) total += static_cast<std::uint64_t>(amount);
    return ceil_div(total, capacity);
  }
  std::vector<std::int32_t> sizes;
  sizes.reserve(taken.size());
  for (const std::int64_t amount : taken) {
    if (amount > 0) sizes.push_back(static_cast<std::int32_t>(amount));
  }
  return bound_of_sizes(sizes, capacity);
}

// What each unit takes of a bin, by take(piece). A group's pieces are neighbours in their bin.
template <class Take>
std::vector<std::int64_t> taken_by_units(const Packing& packing, const PackOptions& options,
                                         Take&& take) {
  std::vector<std::int64_t> taken;
  std::int64_t group = 0;
  for (std::size_t bin = 1; bin < packing.bin_offsets.size(); ++bin) {
    const auto begin = static_cast<std::size_t>(packing.bin_offsets[bin - 1]);
    const auto end = static_cast<std::size_t>(packing.bin_offsets[bin]);
    for (std::size_t piece = begin; piece < end; ++piece) {
      const auto document = static_cast<std::size_t>(packing.documents[piece]);
      const bool joins = options.groups && piece > begin && (*options.groups)[document] == group;
      if (options.groups) group = (*options.groups)[document];
      if (!joins) taken.push_back(0);
      taken.back() += take(piece);
    }
  }
  return taken;
}

}  // namespace

std::int64_t lower_bound_bins(const Packing& packing, const PackOptions& options) {
  const PieceRule rule(packing.capacity, options);
  const auto pieces = static_cast<std::uint64_t>(packing.documents.size());
  std::int64_t best = ceil_div(pieces, options.max_segments);
  if (!packing.sizes.empty()) {
    best = std::max(best, lower_bound_bins(packing.sizes, packing.capacity));
  } else if (rule.exact() && !options.groups) {
    best = std::max(best, bound_of_sizes(packing.lengths, packing.capacity));
  } else {
    const auto slots = [&](std::size_t piece) { return rule.size(packing.lengths[piece]); };
    best = std::max(best, bound(taken_by_units(packing, options, slots), packing.capacity));
  }
  if (options.groups && options.max_segments < PackOptions::kUnlimited) {
    const auto one = [](std::size_t) { return 1; };
    best = std::max(best, bound(taken_by_units(packing, options, one), options.max_segments));
  }
  if (options.resource) {
    const auto resource = [&](std::size_t piece) {
      return (*options.resource)[static_cast<std::size_t>(packing.documents[piece])];
    };
    best = std::max(best,
                    bound(taken_by_units(packing, options, resource), options.resource_capacity));
  }
  return best;
}

std::int64_t lower_bound_bins(std::span<const SizeGroup> groups, std::int64_t capacity) {
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
