// The treap. Priorities are hashes of bin numbers, so the tree is the same in every run.
#include "plan/open_bins.hpp"

#include <algorithm>

#include "core/random.hpp"

namespace brimful {
namespace {

std::uint64_t priority(std::int64_t bin) { return mix64(static_cast<std::uint64_t>(bin) + 1); }

}  // namespace

bool OpenBins::comes_before(std::int64_t a, std::int64_t b) const {
  const std::int64_t key_a = nodes_[index(a)].key;
  const std::int64_t key_b = nodes_[index(b)].key;
  return key_a != key_b ? key_a < key_b : a < b;
}

void OpenBins::update(Node& node) const {
  node.most = node.left;
  for (const std::int64_t child : {node.before, node.behind}) {
    if (child < 0) continue;
    const Room& most = nodes_[index(child)].most;
    node.most.slots = std::max(node.most.slots, most.slots);
    node.most.pieces = std::max(node.most.pieces, most.pieces);
    node.most.resource = std::max(node.most.resource, most.resource);
  }
}

std::int64_t OpenBins::find(std::int64_t top, const Room& need, int& steps) const {
  if (top < 0 || steps == 0) return -1;
  const Node& node = nodes_[index(top)];
  --steps;
  if (!node.most.holds(need)) return -1;
  const std::int64_t before = find(node.before, need, steps);
  if (before >= 0) return before;
  return node.left.holds(need) ? top : find(node.behind, need, steps);
}

std::int64_t OpenBins::merge(std::int64_t a, std::int64_t b) {
  if (a < 0) return b;
  if (b < 0) return a;
  const bool a_on_top = priority(a) > priority(b);
  const std::int64_t top = a_on_top ? a : b;
  Node& node = nodes_[index(top)];
  if (a_on_top) {
    node.behind = merge(node.behind, b);
  } else {
    node.before = merge(a, node.before);
  }
  update(node);
  return top;
}

void OpenBins::split(std::int64_t top, std::int64_t bin, std::int64_t& before,
                     std::int64_t& behind) {
  if (top < 0) {
    before = behind = -1;
    return;
  }
  Node& node = nodes_[index(top)];
  if (comes_before(top, bin)) {
    split(node.behind, bin, node.behind, behind);
    before = top;
  } else {
    split(node.before, bin, before, node.before);
    behind = top;
  }
  update(node);
}

std::int64_t OpenBins::add(std::int64_t top, std::int64_t bin) {
  if (top < 0 || priority(bin) > priority(top)) {
    Node& node = nodes_[index(bin)];
    split(top, bin, node.before, node.behind);
    update(node);
    return bin;
  }
  Node& node = nodes_[index(top)];
  std::int64_t& side = comes_before(top, bin) ? node.behind : node.before;
  side = add(side, bin);
  update(node);
  return top;
}

std::int64_t OpenBins::erase(std::int64_t top, std::int64_t bin) {
  Node& node = nodes_[index(top)];
  if (top == bin) return merge(node.before, node.behind);
  std::int64_t& side = comes_before(top, bin) ? node.behind : node.before;
  side = erase(side, bin);
  update(node);
  return top;
}

std::int64_t OpenBins::take(const Room& need) {
  int steps = kMostSteps;
  const std::int64_t bin = find(root_, need, steps);
  if (bin >= 0) root_ = erase(root_, bin);
  return bin;
}

void OpenBins::insert(std::int64_t bin, const Room& left, std::int64_t key) {
  if (index(bin) >= nodes_.size()) nodes_.resize(index(bin) + 1);
  nodes_[index(bin)] = {.left = left, .most = left, .key = key};
  root_ = add(root_, bin);
}

}  // namespace brimful
