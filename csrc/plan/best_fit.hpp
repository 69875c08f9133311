// Best fit: a piece goes into the bin whose free space is the least that suffices; of equal ones
// into the first. Two indexes with the same answers: a table over all sizes of free space, and
// buckets of neighbouring sizes, for capacities that are large beside the number of pieces.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace brimful {

// Which of the numbers 0 .. size - 1 are set, and the next one set from any number on, in as many
// steps as `size` has digits to the base 64.
class BitTree {
 public:
  explicit BitTree(std::int64_t size);

  void set(std::int64_t i);
  void clear(std::int64_t i);
  std::int64_t next(std::int64_t i) const;  // the least number set that is >= i, or -1

 private:
  // Bit i of a level: word i of the level below is not 0.
  std::vector<std::vector<std::uint64_t>> levels_;
};

class BestFitTable {
 public:
  explicit BestFitTable(std::int64_t capacity)
      : sizes_(capacity + 1), heaps_(static_cast<std::size_t>(capacity) + 1, -1) {}

  std::int64_t take(std::int32_t length);
  void insert(std::int64_t run, std::int64_t first_bin, std::int32_t free);

 private:
  // The runs of one size are a pairing heap, first bin on top.
  struct Node {
    std::int64_t first_bin = 0;
    std::int64_t child = -1;
    std::int64_t sibling = -1;
  };
  std::int64_t meld(std::int64_t a, std::int64_t b);
  std::int64_t meld_siblings(std::int64_t first);

  BitTree sizes_;                    // free spaces that some run has
  std::vector<std::int64_t> heaps_;  // [capacity + 1] run on top, or -1
  std::vector<Node> nodes_;          // by run
};

class BestFitBuckets {
 public:
  BestFitBuckets(std::int64_t capacity, std::int64_t num_pieces);

  std::int64_t take(std::int32_t length);
  void insert(std::int64_t run, std::int64_t first_bin, std::int32_t free);

 private:
  using Runs = std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t>;
  // Sizes that agree in their first binary digits share a bucket: bins that are all but full are
  // the many, and so have as many buckets as the emptier ones.
  std::int64_t bucket_of(std::int64_t free) const;

  int digits_;
  BitTree occupied_;           // buckets that hold a run
  std::vector<Runs> buckets_;  // (free, first bin) -> run, however many sizes fall together
  Runs::node_type unused_;     // the node of the run taken last, to be used again
};

}  // namespace brimful
