// The bit tree, the pairing heaps of the table, and the buckets.
#include "plan/best_fit.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace brimful {

BitTree::BitTree(std::int64_t size) {
  do {
    size = (size + 63) / 64;
    levels_.emplace_back(static_cast<std::size_t>(size));
  } while (size > 1);
}

void BitTree::set(std::int64_t i) {
  for (auto& level : levels_) {
    std::uint64_t& word = level[i >> 6];
    const bool known = word != 0;
    word |= std::uint64_t{1} << (i & 63);
    if (known) return;
    i >>= 6;
  }
}

void BitTree::clear(std::int64_t i) {
  for (auto& level : levels_) {
    std::uint64_t& word = level[i >> 6];
    word &= ~(std::uint64_t{1} << (i & 63));
    if (word != 0) return;
    i >>= 6;
  }
}

std::int64_t BitTree::next(std::int64_t i) const {
  for (std::size_t height = 0; height < levels_.size(); ++height) {
    const auto& level = levels_[height];
    const auto at = static_cast<std::size_t>(i >> 6);
    if (at >= level.size()) return -1;
    const std::uint64_t word = level[at] >> (i & 63);
    if (word != 0) {
      i += std::countr_zero(word);
      while (height-- > 0) i = (i << 6) + std::countr_zero(levels_[height][i]);
      return i;
    }
    i = (i >> 6) + 1;
  }
  return -1;
}

std::int64_t BestFitTable::meld(std::int64_t a, std::int64_t b) {
  if (a < 0) return b;
  if (b < 0) return a;
  if (nodes_[b].first_bin < nodes_[a].first_bin) std::swap(a, b);
  nodes_[b].sibling = std::exchange(nodes_[a].child, b);
  return a;
}

// Pairs from the front, then the pairs from the back: what makes taking O(log n), amortized.
std::int64_t BestFitTable::meld_siblings(std::int64_t first) {
  std::int64_t pairs = -1;
  while (first >= 0) {
    const std::int64_t a = first;
    const std::int64_t b = std::exchange(nodes_[a].sibling, -1);
    first = b < 0 ? -1 : std::exchange(nodes_[b].sibling, -1);
    const std::int64_t pair = meld(a, b);
    nodes_[pair].sibling = std::exchange(pairs, pair);
  }
  std::int64_t top = -1;
  while (pairs >= 0) {
    const std::int64_t pair = std::exchange(pairs, nodes_[pairs].sibling);
    nodes_[pair].sibling = -1;
    top = meld(top, pair);
  }
  return top;
}

std::int64_t BestFitTable::take(std::int32_t length) {
  const std::int64_t size = sizes_.next(length);
  if (size < 0) return -1;
  const std::int64_t run = heaps_[size];
  heaps_[size] = meld_siblings(nodes_[run].child);
  if (heaps_[size] < 0) sizes_.clear(size);
  return run;
}

void BestFitTable::insert(std::int64_t run, std::int64_t first_bin, std::int32_t free) {
  if (run >= static_cast<std::int64_t>(nodes_.size())) nodes_.resize(run + 1);
  nodes_[run] = {.first_bin = first_bin};
  std::int64_t& top = heaps_[free];
  if (top < 0) sizes_.set(free);
  top = meld(top, run);
}

BestFitBuckets::BestFitBuckets(std::int64_t capacity, std::int64_t num_pieces)
    : digits_(std::max(
          0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(num_pieces))) - 6)),
      occupied_(bucket_of(capacity) + 1),
      buckets_(static_cast<std::size_t>(bucket_of(capacity)) + 1) {}

std::int64_t BestFitBuckets::bucket_of(std::int64_t free) const {
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(free)));
  const int shift = std::max(0, bits - digits_ - 1);
  return (std::int64_t{shift} << digits_) + (free >> shift);
}

std::int64_t BestFitBuckets::take(std::int32_t length) {
  std::int64_t bucket = bucket_of(length);
  auto found = buckets_[bucket].lower_bound({length, 0});
  if (found == buckets_[bucket].end()) {
    bucket = occupied_.next(bucket + 1);
    if (bucket < 0) return -1;
    found = buckets_[bucket].begin();
  }
  const std::int64_t run = found->second;
  unused_ = buckets_[bucket].extract(found);
  if (buckets_[bucket].empty()) occupied_.clear(bucket);
  return run;
}

void BestFitBuckets::insert(std::int64_t run, std::int64_t first_bin, std::int32_t free) {
  const std::int64_t bucket = bucket_of(free);
  Runs& runs = buckets_[bucket];
  if (runs.empty()) occupied_.set(bucket);
  if (unused_.empty()) {
    runs.emplace(std::pair(free, first_bin), run);
    return;
  }
  unused_.key() = {free, first_bin};
  unused_.mapped() = run;
  runs.insert(std::move(unused_));
}

}  // namespace brimful
