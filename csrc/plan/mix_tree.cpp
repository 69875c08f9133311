#include "plan/mix_tree.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

#include "core/random.hpp"

namespace brimful {
namespace {

using u128 = unsigned __int128;

// floor((q k + f) / 2^64): arrivals among the first k that go left.
std::int64_t left_of(std::uint64_t share, std::uint64_t phase, std::int64_t k) {
  return static_cast<std::int64_t>((static_cast<u128>(share) * static_cast<u128>(k) + phase) >> 64);
}

// The arrival that is number `number` on a side with this share and phase.
std::int64_t arrival_of(std::uint64_t share, std::uint64_t phase, std::int64_t number) {
  if (number == kNever || share == 0) return kNever;
  const u128 target = (static_cast<u128>(number) + 1) << 64;
  const u128 arrival = (target - phase + share - 1) / share - 1;
  return arrival >= static_cast<u128>(kNever) ? kNever : static_cast<std::int64_t>(arrival);
}

// The largest binary fraction q / 2^64 not above part / whole, kept inside (0, 1).
std::uint64_t fraction(double part, double whole) {
  const double scaled = std::ldexp(part / whole, 64);
  if (scaled >= std::ldexp(1.0, 64)) return std::numeric_limits<std::uint64_t>::max();
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(scaled));
}

}  // namespace

MixTree::MixTree(std::span<const double> shares, std::uint64_t key) {
  struct Part {
    double share;
    int first_leaf;  // ties go by leaf order
    int child;
    bool operator>(const Part& other) const {
      return std::pair(share, first_leaf) > std::pair(other.share, other.first_leaf);
    }
  };
  std::priority_queue<Part, std::vector<Part>, std::greater<>> parts;
  for (int leaf = 0; leaf < static_cast<int>(shares.size()); ++leaf) {
    parts.push({shares[static_cast<std::size_t>(leaf)], leaf, ~leaf});
  }
  root_ = ~0;
  nodes_.reserve(shares.size());
  while (parts.size() > 1) {
    const Part left = parts.top();
    parts.pop();
    const Part right = parts.top();
    parts.pop();
    const int node = static_cast<int>(nodes_.size());
    nodes_.push_back({fraction(left.share, left.share + right.share), derive_key(key, node),
                      left.child, right.child});
    parts.push({left.share + right.share, std::min(left.first_leaf, right.first_leaf), node});
    root_ = node;
  }
}

MixTree::Arrival MixTree::arrival(std::int64_t k) const {
  int at = root_;
  while (at >= 0) {
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    const std::int64_t before = left_of(node.share, node.phase, k);
    if (left_of(node.share, node.phase, k + 1) > before) {
      k = before;
      at = node.left;
    } else {
      k -= before;
      at = node.right;
    }
  }
  return {~at, k};
}

void MixTree::count(std::int64_t k, std::span<std::int64_t> counts) const {
  std::vector<std::int64_t> arrivals(nodes_.size());
  const auto give = [&](int child, std::int64_t n) {
    (child >= 0 ? arrivals[static_cast<std::size_t>(child)]
                : counts[static_cast<std::size_t>(~child)]) = n;
  };
  give(root_, k);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    const std::int64_t left = left_of(node.share, node.phase, arrivals[i]);
    give(node.left, left);
    give(node.right, arrivals[i] - left);
  }
}

void MixTree::locate(std::span<std::int64_t> numbers) const {
  // The way up from a leaf: who is the parent, and on which side.
  std::vector<std::pair<int, bool>> node_up(nodes_.size(), {-1, false});
  std::vector<std::pair<int, bool>> leaf_up(numbers.size(), {-1, false});
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    for (const auto& [child, is_left] :
         {std::pair(node.left, true), std::pair(node.right, false)}) {
      (child >= 0 ? node_up[static_cast<std::size_t>(child)]
                  : leaf_up[static_cast<std::size_t>(~child)]) = {i, is_left};
    }
  }
  for (std::size_t leaf = 0; leaf < numbers.size(); ++leaf) {
    std::int64_t k = numbers[leaf];
    for (auto [at, is_left] = leaf_up[leaf]; at >= 0;) {
      const Node& node = nodes_[static_cast<std::size_t>(at)];
      // Seen from the right side, the share is 2^64 - q and the phase 2^64 - 1 - f.
      k = is_left ? arrival_of(node.share, node.phase, k)
                  : arrival_of(0 - node.share, ~node.phase, k);
      std::tie(at, is_left) = node_up[static_cast<std::size_t>(at)];
    }
    numbers[leaf] = k;
  }
}

}  // namespace brimful
