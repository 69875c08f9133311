#include "plan/best_fit.hpp"

#include <bit>
#include <limits>
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

void BestFitTable::insert(std::int64_t run, const Run& content) {
  if (run >= static_cast<std::int64_t>(nodes_.size())) nodes_.resize(run + 1);
  nodes_[run] = {.first_bin = content.first_bin};
  std::int64_t& top = heaps_[content.free];
  if (top < 0) sizes_.set(content.free);
  top = meld(top, run);
}

std::int64_t BestFitTree::take(std::int32_t length) {
  const auto found = runs_.lower_bound({length, std::numeric_limits<std::int64_t>::min()});
  if (found == runs_.end()) return -1;
  const std::int64_t run = found->second;
  unused_ = runs_.extract(found);
  return run;
}

void BestFitTree::insert(std::int64_t run, const Run& content) {
  if (unused_.empty()) {
    runs_.emplace(std::pair(content.free, content.first_bin), run);
    return;
  }
  unused_.key() = {content.free, content.first_bin};
  unused_.mapped() = run;
  runs_.insert(std::move(unused_));
}

}  // namespace brimful
