// Streaming: bins from a buffer of pieces in arrival order. A bin is the oldest piece and an exact
// fill: the subset of the buffer that adds up to the free space, or as near to it as any does.
//
// Order is kept. With B the size of the buffer, every piece placed before piece i arrived less than
// 3B after it, because a piece enters the buffer only when the oldest one waiting arrived less than
// 3B before; and at most B - 1 pieces that arrived before i are placed after it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packer.hpp"

namespace brimful {

// The sums that subsets of some items have, up to a target; row r of a table of bitsets holds the
// sums of the first r items.
class SubsetSums {
 public:
  // Forgets the items. Sums above `target` are not looked at.
  void reset(std::int64_t target);
  // Adds an item of 1 .. target and returns whether the target is a sum now.
  bool add(std::int64_t size);
  // Appends the numbers of items that add up to the largest sum, in rising order.
  void best_subset(std::vector<std::int64_t>& items) const;

 private:
  std::uint64_t* row(std::size_t r) { return table_.data() + r * stride_ + 1; }
  const std::uint64_t* row(std::size_t r) const { return table_.data() + r * stride_ + 1; }

  std::int64_t target_ = 0;
  std::int64_t total_ = 0;           // of all items, or the target where that is less
  bool hit_ = false;                 // the last item completes the target, and has no row
  std::size_t words_ = 0;            // of the last row that may hold a bit
  std::size_t stride_ = 0;           // words of a row, with a zero in front
  std::vector<std::int64_t> sizes_;  // of the items
  std::vector<std::uint64_t> table_;
};

// `buffer` is the number of pieces to choose from, at least 1. Lengths must be surveyed before;
// bins and pieces are written to `packing`, the pieces of a bin in arrival order.
void place_streaming(std::span<const std::int64_t> lengths, Overlong overlong, std::int64_t buffer,
                     Packing& packing);

}  // namespace brimful
