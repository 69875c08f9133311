// The ledger of one loader: its counts over all its streams: this rank's, those of all ranks, and
// exposure by source. Any thread may add or read.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "plan/tally.hpp"

namespace brimful {

struct Counts {
  std::int64_t batches = 0;  // delivered on this rank
  Tally rank;
  Tally global;
  std::vector<SourceTally> exposure;  // one a source, all ranks
  Evenness evenness;
};

class Ledger {
 public:
  explicit Ledger(int num_sources);

  void add(const Delta& delta, bool is_batch);
  Counts counts() const;
  // Goes on from counts that a state carries. This rank's are kept: they speak of this process.
  void restore(const Tally& global, const std::vector<SourceTally>& exposure);

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

}  // namespace brimful
