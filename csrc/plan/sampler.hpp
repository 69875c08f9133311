// The sampler: which document is draw number i. No tables beyond a few numbers a source, no state:
// the draws of any stretch of any epoch follow from (corpus, seed) alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "corpus/corpus.hpp"

namespace brimful {

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
  // numbers[l]; the largest int64 where it lies beyond that.
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

class Sampler {
 public:
  // Throws PlanError for weights that cannot be used, or under WhenDry::kError when a source would
  // run dry before the epoch ends.
  Sampler(const Corpus& corpus, bool shuffle, std::uint64_t seed);

  // Draws of an epoch; 0 for a corpus without documents.
  std::int64_t epoch_draws([[maybe_unused]] std::int64_t epoch) const { return epoch_draws_; }
  // Epochs that can be numbered: draws are counted through all of them in 64 bits.
  std::int64_t most_epochs() const;
  // Documents of draws first, first + 1, ... of an epoch, as many as `out` holds.
  void draw(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const;

 private:
  struct Leaf {
    int source;
    std::int64_t first;  // document number
    std::int64_t count;
  };
  // Arrivals at `tree` from draw `start` of an epoch on. Its leaf t stands for leaves_[live[t]],
  // whose documents before origins[t] were drawn in earlier phases. Arrivals that find their source
  // dry are passed over; a new phase begins once half of the shares is dry, so few are.
  struct Phase {
    std::int64_t start;
    MixTree tree;
    std::vector<int> live;
    std::vector<std::int64_t> origins;

    std::int64_t draws_before(std::int64_t arrival, std::span<const Leaf> leaves) const;
  };

  std::int64_t document(const Leaf& leaf, std::int64_t pass, std::int64_t number) const;
  void plan_whole_epochs(const std::vector<double>& shares, std::uint64_t key);

  std::vector<Leaf> leaves_;
  std::vector<Phase> phases_;
  std::int64_t epoch_draws_ = 0;
  bool whole_epochs_ = true;  // every document once an epoch; else sources run on across epochs
  bool shuffle_;
  std::uint64_t seed_;
};

}  // namespace brimful
