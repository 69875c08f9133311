// The tree that decides which source each draw of a mixture goes to.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace brimful {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Divides an endless sequence of arrivals among leaves, each getting its share. A Huffman-shaped
// binary tree; with q / 2^64 the share of a node's left side and f its phase, arrival k at the node
// goes left iff floor((q(k+1)+f) / 2^64) > floor((qk+f) / 2^64) and is number floor((qk+f) / 2^64)
// there; else it goes right as number k minus that. So each leaf numbers its own arrivals 0, 1, ...
// in order, and counts stay within two of share x arrivals at every prefix.
class MixTree {
 public:
  struct Arrival {
    int leaf;
    std::int64_t number;  // how many arrivals this leaf had before
  };

  // Shares are positive and relative to each other. `key` sets the phases.
  MixTree(std::span<const double> shares, std::uint64_t key);

  Arrival arrival(std::int64_t k) const;
  // Arrivals 0 .. k-1 of each leaf, written to counts[leaf].
  void count(std::int64_t k, std::span<std::int64_t> counts) const;
  // For each leaf l, the arrival that brings its numbers[l]-th one (counted from 0), written over
  // numbers[l]; kNever where it lies beyond int64.
  void locate(std::span<std::int64_t> numbers) const;

 private:
  struct Node {
    std::uint64_t share;  // q
    std::uint64_t phase;  // f
    int left;             // >= 0: a node; < 0: leaf ~left
    int right;
  };
  std::vector<Node> nodes_;  // children before parents
  int root_ = 0;
};

}  // namespace brimful
