// The tables of sums, row by row, and the way back through them.
#include "plan/subset_sums.hpp"

#include <algorithm>

#include "core/cpu.hpp"

namespace brimful {
namespace {

constexpr std::uint8_t kNoSum = 0xfe;  // one more is still a number

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// to = from | (from << shift), over `words` words; from[-1] is 0.
BRIMFUL_HOT void or_shifted(const std::uint64_t* from, std::uint64_t* to, std::size_t words,
                            std::size_t shift) {
  const std::size_t skip = shift / 64;
  const unsigned bits = shift % 64;
  for (std::size_t w = 0; w < skip; ++w) to[w] = from[w];
  const std::uint64_t* low = from - 1;
  for (std::size_t w = skip; w < words; ++w) {
    // Two shifts, as one by 64 is not defined.
    to[w] = from[w] | low[w - skip + 1] << bits | low[w - skip] >> 1 >> (63 - bits);
  }
}

bool test(const std::uint64_t* row, std::int64_t i) { return (row[i / 64] >> (i % 64) & 1) != 0; }

// to[s] = min(from[s], from[s - size] + 1), for the sums below `sums`.
BRIMFUL_HOT void fewest_with(const std::uint8_t* from, std::uint8_t* to, std::size_t sums,
                             std::size_t size) {
  std::copy(from, from + size, to);
  for (std::size_t s = size; s < sums; ++s) {
    const auto with = static_cast<std::uint8_t>(from[s - size] + 1);
    to[s] = std::min(from[s], with);
  }
}

}  // namespace

void Copies::reset(std::int64_t target) {
  target_ = target;
  for (const std::int64_t size : sizes_) copies_[at(size)] = 0;
  sizes_.clear();
  if (copies_.size() <= at(target)) copies_.resize(at(target) + 1);
}

void SubsetSums::reset(std::int64_t target) {
  target_ = target;
  copies_.reset(target);
  total_ = 0;
  hit_ = false;
  words_ = 1;
  stride_ = at(target / 64 + 2);
  sizes_.clear();
  if (table_.size() < stride_) table_.resize(stride_);
  table_[0] = 0;
  table_[1] = 1;  // the sum of nothing
}

Take SubsetSums::add(std::int64_t size) {
  if (!copies_.add(size)) return Take::kNo;
  const std::size_t last = sizes_.size();
  sizes_.push_back(size);
  if (total_ >= target_ - size && test(row(last), target_ - size)) {
    hit_ = true;
    return Take::kLast;
  }
  if (table_.size() < (last + 2) * stride_) table_.resize(2 * (last + 2) * stride_);
  total_ = std::min(target_, total_ + size);
  const std::size_t words = at(total_ / 64 + 1);
  std::fill(row(last) + words_, row(last) + words, 0);
  row(last + 1)[-1] = 0;
  or_shifted(row(last), row(last + 1), words, at(size));
  words_ = words;
  return Take::kYes;
}

void SubsetSums::best_subset(std::vector<std::int64_t>& items) const {
  auto item = static_cast<std::int64_t>(sizes_.size());
  std::int64_t sum = target_;
  if (hit_) {
    items.push_back(--item);
    sum -= sizes_[at(item)];
  } else {
    // Bits beyond the target may be set in its word.
    sum = total_;
    while (!test(row(at(item)), sum)) --sum;
  }
  // Rows only grow: an item is needed where the sum is missing from the row before it.
  while (sum > 0) {
    --item;
    if (test(row(at(item)), sum)) continue;
    items.push_back(item);
    sum -= sizes_[at(item)];
  }
  std::reverse(items.begin(), items.end());
}

void CountedSums::reset(std::int64_t target, std::int64_t most) {
  target_ = target;
  copies_.reset(target);
  most_ = static_cast<std::uint8_t>(std::min<std::int64_t>(most, kNoSum - 1));
  stride_ = at(target) + 1;
  sizes_.clear();
  if (table_.size() < stride_) table_.resize(stride_);
  std::fill(table_.begin(), table_.begin() + static_cast<std::ptrdiff_t>(stride_), kNoSum);
  table_[0] = 0;
}

Take CountedSums::add(std::int64_t size) {
  if (!copies_.add(size)) return Take::kNo;
  const std::size_t last = sizes_.size();
  sizes_.push_back(size);
  if (table_.size() < (last + 2) * stride_) table_.resize(2 * (last + 2) * stride_);
  fewest_with(row(last), row(last + 1), stride_, at(size));
  const bool last_one = row(last + 1)[target_] <= most_ || (last + 3) * stride_ > kMostEntries;
  return last_one ? Take::kLast : Take::kYes;
}

void CountedSums::best_subset(std::vector<std::int64_t>& items) const {
  std::size_t item = sizes_.size();
  std::int64_t sum = target_;
  while (row(item)[sum] > most_) --sum;
  while (sum > 0) {
    --item;
    if (row(item)[sum] == row(item + 1)[sum]) continue;
    items.push_back(static_cast<std::int64_t>(item));
    sum -= sizes_[item];
  }
  std::reverse(items.begin(), items.end());
}

}  // namespace brimful
