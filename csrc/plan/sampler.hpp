// The sampler: which document is draw number i of an epoch. No tables beyond a few numbers a
// source, no state: the draws of any stretch of any epoch follow from (corpus, mixes, seed) alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "corpus/corpus.hpp"
#include "plan/era.hpp"
#include "plan/shuffle.hpp"

namespace brimful {

// A mix and the place from which it holds: draw `first` of `epoch`.
struct MixFrom {
  Mix mix;
  std::int64_t epoch;
  std::int64_t first;
};

class Sampler {
 public:
  // `deliverable`: tokens of each source that the packing can deliver. The first of `mixes` holds
  // from the beginning. Throws PlanError for a mix that cannot be followed, StateError for one at a
  // place that the run does not have.
  Sampler(const Corpus& corpus, std::span<const std::int64_t> deliverable, ShuffleRule shuffle,
          std::uint64_t seed, std::span<const MixFrom> mixes);

  // Draws of an epoch; 0 for a corpus without documents, and where the run is over.
  std::int64_t epoch_draws(std::int64_t epoch) const;
  // Whether all sources have left before this epoch.
  bool is_over(std::int64_t epoch) const { return !eras_.empty() && epoch_draws(epoch) == 0; }
  // Epochs that can be numbered: draws are counted through all of them in 64 bits.
  std::int64_t most_epochs() const;
  // Documents of draws first, first + 1, ... of an epoch, as many as `out` holds.
  void draw(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const;

 private:
  void begin_era(const Corpus& corpus, const MixFrom& mix,
                 std::span<const std::int64_t> deliverable);
  std::int64_t epoch_start(std::int64_t epoch) const;
  // The era of a draw: the last one that begins at or before it.
  std::size_t era_of(std::int64_t epoch, std::int64_t first) const;

  struct Range {
    std::int64_t first;  // document number
    std::int64_t count;
  };
  std::vector<Range> sources_;
  std::vector<Era> eras_;  // none for a corpus without documents
  ShuffleRule shuffle_;
  std::uint64_t seed_;
};

}  // namespace brimful
