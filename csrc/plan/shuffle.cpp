#include "plan/shuffle.hpp"

#include <algorithm>

#include "core/random.hpp"

namespace brimful {
namespace {

enum KeyTag : std::uint64_t { kBlockKey = 1, kGroupKey = 2 };

std::int64_t permuted(std::int64_t i, std::int64_t n, std::uint64_t key) {
  return static_cast<std::int64_t>(
      permute(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(n), key));
}

// Blocks in permuted order. The last one as stored may be short, so places behind it shift.
class Blocks {
 public:
  Blocks(std::int64_t count, std::int64_t block, std::uint64_t key)
      : block_(block),
        number_((count - 1) / block + 1),
        missing_(number_ * block - count),
        key_(key),
        short_rank_(static_cast<std::int64_t>(unpermute(
            static_cast<std::uint64_t>(number_ - 1), static_cast<std::uint64_t>(number_), key))) {}

  // The first place that the block of rank `rank` takes in the permuted order.
  std::int64_t start(std::int64_t rank) const {
    return std::min(rank, number_) * block_ - (rank > short_rank_ ? missing_ : 0);
  }
  std::int64_t rank_of(std::int64_t place) const {
    const bool behind = place >= start(short_rank_ + 1);
    return (place + (behind ? missing_ : 0)) / block_;
  }
  std::int64_t document(std::int64_t place) const {
    const std::int64_t rank = rank_of(place);
    return permuted(rank, number_, key_) * block_ + place - start(rank);
  }

 private:
  std::int64_t block_;
  std::int64_t number_;
  std::int64_t missing_;  // documents that the last block is short of
  std::uint64_t key_;
  std::int64_t short_rank_;  // where that one comes
};

}  // namespace

std::optional<Shuffle> parse_shuffle(std::string_view name) {
  if (name == "none") return Shuffle::kNone;
  if (name == "full") return Shuffle::kFull;
  if (name == "block") return Shuffle::kBlock;
  return std::nullopt;
}

std::int64_t shuffled(const ShuffleRule& rule, std::int64_t place, std::int64_t count,
                      std::uint64_t key) {
  switch (rule.kind) {
    case Shuffle::kNone:
      return place;
    case Shuffle::kFull:
      return permuted(place, count, key);
    case Shuffle::kBlock:
      break;
  }
  const std::int64_t block = std::min(rule.block, count);
  const Blocks blocks(count, block, derive_key(key, kBlockKey));
  const std::int64_t group = blocks.rank_of(place) / rule.group;
  const std::int64_t begin = blocks.start(group * rule.group);
  const std::int64_t end = blocks.start((group + 1) * rule.group);
  const std::uint64_t group_key = derive_key(key, kGroupKey, group);
  return blocks.document(begin + permuted(place - begin, end - begin, group_key));
}

}  // namespace brimful
