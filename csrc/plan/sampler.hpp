// The sampler: which document is draw number i. Closed form, no tables beyond one entry a source, no
// state: any draw of any epoch costs one walk down a small tree and one keyed permutation.
#pragma once

#include <cstdint>
#include <vector>

#include "corpus/corpus.hpp"

namespace brimful {

// A set of documents drawn as one permutation an epoch: a source, or the whole corpus.
struct Leaf {
  std::int64_t first = 0;  // document number
  std::int64_t count = 0;
  double share = 1;  // of draws, relative to the other leaves
};

// Divides draws among leaves: a Huffman-shaped binary tree whose nodes send arrival k left iff
// floor((q(k+1)+f) / 2^64) > floor((qk+f) / 2^64), with q / 2^64 the left side's share. Counts stay
// within two draws of share x draws at every prefix, and a leaf's arrivals are numbered in order.
class MixTree {
 public:
  struct Arrival {
    int leaf;
    std::int64_t number;  // how many draws this leaf had before
  };

  MixTree() = default;
  // Leaves with a share of 0 are never drawn. `key` sets the phases.
  MixTree(const std::vector<double>& shares, std::uint64_t key);

  Arrival draw(std::int64_t k) const;
  // Draws 0 .. k-1 that fall to each leaf, added to counts[leaf].
  void count(std::int64_t k, std::vector<std::int64_t>& counts) const;

 private:
  struct Node {
    std::uint64_t share = 0;  // q
    std::uint64_t phase = 0;  // f
    int left = 0;             // >= 0: node; < 0: leaf ~left
    int right = 0;
  };
  std::vector<Node> nodes_;
  int root_ = 0;
};

class Sampler {
 public:
  // Throws PlanError when no document can be drawn, or when WhenDry::kError and a source would run
  // dry before the epoch ends.
  Sampler(const Corpus& corpus, bool shuffle, std::uint64_t seed);

  // Draws of one epoch.
  std::int64_t epoch_draws() const { return epoch_draws_; }
  // The document of draw `i` of epoch `epoch`, 0 <= i < epoch_draws().
  std::int64_t draw(std::int64_t epoch, std::int64_t i) const;

 private:
  // From draw `start` of an epoch on, `tree` divides draws; leaf l has had origins[l] before.
  struct Phase {
    std::int64_t start = 0;
    MixTree tree;
    std::vector<std::int64_t> origins;
  };
  std::int64_t document(const Leaf& leaf, int leaf_number, std::int64_t number) const;
  void add_phases_until_dry(std::uint64_t key);

  std::vector<Leaf> leaves_;
  std::vector<Phase> phases_;
  std::int64_t epoch_draws_ = 0;
  bool epochs_run_on_ = false;  // a leaf's numbers go on from epoch to epoch
  bool shuffle_ = false;
  std::uint64_t seed_ = 0;
};

}  // namespace brimful
