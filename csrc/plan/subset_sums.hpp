// Which sums some sizes have: the choice of pieces that fills a bin exactly, or as nearly as any
// do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brimful {

// What becomes of an item offered: not taken as it makes no new sum, taken, taken as the last one.
enum class Take : std::uint8_t { kNo, kYes, kLast };

// How many items of each size there are. More of one size than fit into the target make no new sum.
class Copies {
 public:
  void reset(std::int64_t target);
  // Counts an item of 1 .. target; returns whether it may make a new sum.
  bool add(std::int64_t size) {
    std::int32_t& copies = copies_[static_cast<std::size_t>(size)];
    if ((copies + 1) * size > target_) return false;
    if (copies++ == 0) sizes_.push_back(size);
    return true;
  }

 private:
  std::int64_t target_ = 0;
  std::vector<std::int64_t> sizes_;  // that have copies
  std::vector<std::int32_t> copies_;
};

// The sums that subsets of some items have, up to a target; row r of a table of bitsets holds the
// sums of the first r items.
class SubsetSums {
 public:
  // Forgets the items. Sums above `target` are not looked at.
  void reset(std::int64_t target);
  // Offers an item of 1 .. target; the last one is that with which the target is a sum.
  Take add(std::int64_t size);
  // Appends the numbers of items that add up to the largest sum, in rising order.
  void best_subset(std::vector<std::int64_t>& items) const;

 private:
  std::uint64_t* row(std::size_t r) { return table_.data() + r * stride_ + 1; }
  const std::uint64_t* row(std::size_t r) const { return table_.data() + r * stride_ + 1; }

  std::int64_t target_ = 0;
  std::int64_t total_ = 0;  // of all items, or the target where that is less
  bool hit_ = false;        // the last item completes the target, and has no row
  std::size_t words_ = 0;   // of the last row that may hold a bit
  std::size_t stride_ = 0;  // words of a row, with a zero in front
  Copies copies_;
  std::vector<std::int64_t> sizes_;  // of the items
  std::vector<std::uint64_t> table_;
};

// The same with at most some number of items: row r of a table holds the fewest of the first r
// items that have each sum. It costs 8 bits a sum where SubsetSums takes one.
class CountedSums {
 public:
  // Forgets the items. Subsets have at most `most` of them, and never more than 253.
  void reset(std::int64_t target, std::int64_t most);
  // Offers an item of 1 .. target; the last one is that with which the target is a sum, or the
  // table as large as it may be.
  Take add(std::int64_t size);
  void best_subset(std::vector<std::int64_t>& items) const;

 private:
  static constexpr std::size_t kMostEntries = 1 << 22;  // 64 items at the largest target

  std::uint8_t* row(std::size_t r) { return table_.data() + r * stride_; }
  const std::uint8_t* row(std::size_t r) const { return table_.data() + r * stride_; }

  std::int64_t target_ = 0;
  std::uint8_t most_ = 0;
  std::size_t stride_ = 0;
  Copies copies_;
  std::vector<std::int64_t> sizes_;  // of the items
  std::vector<std::uint8_t> table_;
};

}  // namespace brimful
