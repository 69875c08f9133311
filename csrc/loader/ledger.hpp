// The ledger of one loader: its counts over all its streams: this rank's, those of all ranks,
// exposure by source, and records of the last batches. Any thread may add or read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "batch/layout.hpp"
#include "loader/records.hpp"
#include "plan/dealer.hpp"
#include "plan/tally.hpp"

namespace brimful {

// What a rank put aside is known to that rank alone: only its own counts are without it.
struct Counts {
  std::int64_t batches = 0;  // delivered on this rank
  Tally rank;
  std::int64_t bad_documents = 0;  // put aside on this rank
  std::int64_t bad_tokens = 0;
  Tally global;
  std::vector<SourceTally> exposure;  // one a source, all ranks
  Evenness evenness;
};

// A document that was put aside, and the step it was meant for.
struct BadDocument {
  BadPiece piece;
  std::int64_t epoch;
  std::int64_t step;  // in its epoch
};

class Ledger {
 public:
  explicit Ledger(int num_sources);

  // The number of the run that is counted; another one begins with each state that is loaded.
  std::int64_t run() const;
  // A batch of a run was delivered. One of an earlier run counts for this rank alone.
  void add_batch(const BatchSpec& spec, const BatchMeta& meta, std::int64_t run);
  // What the end of an epoch adds, likewise.
  void add_end(const Delta& delta, std::int64_t run);
  Counts counts() const;
  Records& records() { return records_; }
  // In order of delivery, from number `first` on.
  std::vector<BadDocument> bad_documents(std::size_t first) const;
  // Goes on from counts that a state carries, less the losses `ahead` that will be counted again.
  // This rank's are kept: they speak of this process. Throws StateError, and changes nothing, where
  // the counts do not fit the corpus or lack those losses.
  void restore(const Tally& global, const std::vector<SourceTally>& exposure, const Delta& ahead);
  // Another run begins at step 0.
  void restart();

  static constexpr std::size_t kMostBadDocuments = 1000;  // listed; more are counted

 private:
  void add(const Delta& delta, std::int64_t run);

  mutable std::mutex mutex_;
  Counts counts_;
  std::int64_t run_ = 0;
  std::vector<BadDocument> bad_documents_;
  Records records_;
};

}  // namespace brimful
