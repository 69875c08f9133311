// Which sums some sizes have: the choice of pieces that fills a bin exactly, or as nearly as any
// do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

// The same with at most some number of items: row r of a table holds the fewest of the first r
// items that have each sum. It costs 8 bits a sum where SubsetSums takes one.
class CountedSums {
 public:
  // Forgets the items. Subsets have at most `most` of them, and never more than 253.
  void reset(std::int64_t target, std::int64_t most);
  // Adds an item of 1 .. target; returns whether more may follow: not when the target is a sum, or
  // the table has become as large as it may.
  bool add(std::int64_t size);
  void best_subset(std::vector<std::int64_t>& items) const;

 private:
  static constexpr std::size_t kMostEntries = 1 << 24;  // 256 items at the largest target

  std::uint8_t* row(std::size_t r) { return table_.data() + r * stride_; }
  const std::uint8_t* row(std::size_t r) const { return table_.data() + r * stride_; }

  std::int64_t target_ = 0;
  std::uint8_t most_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::int64_t> sizes_;  // of the items
  std::vector<std::uint8_t> table_;
};

}  // namespace brimful
