// Open bins where room has more sides than free slots: an ordered tree of bins (a treap, Seidel and
// Aragon 1996) in which every node knows the most that any bin below it has left of each side.
//
// Bins stand by a key that each is given, then by number. A search goes to the first bin in order
// with enough of everything. Where each side is to be had
// below a node, but of different bins, it looks there in vain; so it looks at kMostSteps nodes at
// most, and then takes a later bin of those on its way, or none. With one side beside the order's
// own it needs a few steps a level and finds the first one.
#pragma once

#include <cstdint>
#include <vector>

namespace brimful {

// What a unit takes, or what a bin has left.
struct Room {
  std::int64_t slots = 0;
  std::int64_t pieces = 0;
  std::int64_t resource = 0;

  bool holds(const Room& need) const {
    return slots >= need.slots && pieces >= need.pieces && resource >= need.resource;
  }
  Room& operator-=(const Room& taken) {
    slots -= taken.slots;
    pieces -= taken.pieces;
    resource -= taken.resource;
    return *this;
  }
};

class OpenBins {
 public:
  // Removes and returns the first bin that holds `need`, or -1.
  std::int64_t take(const Room& need);
  // Bins are numbered without gaps. `bin` must not be in the tree.
  void insert(std::int64_t bin, const Room& left, std::int64_t key);
  // What was left in a bin when it was inserted last.
  const Room& left(std::int64_t bin) const { return nodes_[index(bin)].left; }

 private:
  static constexpr int kMostSteps = 256;

  struct Node {
    Room left;
    Room most;  // below, and here
    std::int64_t key = 0;
    std::int64_t before = -1;
    std::int64_t behind = -1;
  };

  static std::size_t index(std::int64_t bin) { return static_cast<std::size_t>(bin); }

  bool comes_before(std::int64_t a, std::int64_t b) const;
  void update(Node& node) const;
  std::int64_t find(std::int64_t top, const Room& need, int& steps) const;
  std::int64_t merge(std::int64_t a, std::int64_t b);
  // Bins that come before `bin`, and the others.
  void split(std::int64_t top, std::int64_t bin, std::int64_t& before, std::int64_t& behind);
  std::int64_t add(std::int64_t top, std::int64_t bin);
  std::int64_t erase(std::int64_t top, std::int64_t bin);

  std::int64_t root_ = -1;
  std::vector<Node> nodes_;  // by bin
};

}  // namespace brimful
