// The tournament: every node knows the most free space below it.
#include "plan/first_fit.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace brimful {

std::int64_t FirstFitTree::take(std::int32_t length) {
  if (leaves_ == 0 || most_[1] < length) return -1;
  std::size_t node = 1;
  while (node < leaves_) node = 2 * node + (most_[2 * node] < length);
  set(node - leaves_, 0);
  return runs_[node - leaves_];
}

void FirstFitTree::insert(std::int64_t run, std::int64_t first_bin, std::int32_t free) {
  const auto bin = static_cast<std::size_t>(first_bin);
  if (bin >= leaves_) grow(std::bit_ceil(bin + 1));
  runs_[bin] = run;
  set(bin, free);
}

void FirstFitTree::set(std::size_t bin, std::int32_t free) {
  std::size_t node = leaves_ + bin;
  most_[node] = free;
  while (node > 1) {
    node /= 2;
    const std::int32_t most = std::max(most_[2 * node], most_[2 * node + 1]);
    if (most_[node] == most) return;
    most_[node] = most;
  }
}

void FirstFitTree::grow(std::size_t bins) {
  std::vector<std::int32_t> most(2 * bins);
  std::copy(most_.begin() + static_cast<std::ptrdiff_t>(leaves_), most_.end(),
            most.begin() + static_cast<std::ptrdiff_t>(bins));
  for (std::size_t node = bins; node-- > 1;) {
    most[node] = std::max(most[2 * node], most[2 * node + 1]);
  }
  leaves_ = bins;
  most_ = std::move(most);
  runs_.resize(bins);
}

}  // namespace brimful
