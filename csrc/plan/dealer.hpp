// The dealer walks the plan: it takes the bins of one epoch in order, groups them into optimizer
// steps of the global batch, and hands out this rank's rows of one micro-batch after the other. All
// ranks walk the same bins, so counts of the whole step are known without communication.
//
// Row j of micro-batch m on rank r is bin `first + (m * batch_size + j) * world_size + r` of a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace brimful {

// Where delivery stands: the bin at which the current step begins, and how many bins of that step
// have been delivered (over all ranks). Independent of world size, threads and read-ahead.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t window = 0;
  std::int64_t bin = 0;        // in the window; may equal its number of bins
  std::int64_t step_bins = 0;  // bins of this step already delivered
  bool operator==(const Cursor&) const = default;
};

// How bins become batches. None of this changes the order of bins.
struct Geometry {
  std::int64_t batch_size = 1;  // bins a rank and micro-batch
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::int64_t accumulate = 1;  // micro-batches a step
  bool drop_last = false;       // leave out the last, incomplete step of an epoch, counted

  std::int64_t bins_per_batch() const { return batch_size * world_size; }
  std::int64_t bins_per_step() const { return batch_size * world_size * accumulate; }
};

// Additive counts. Tokens are real tokens, effective ones have a label, slots are places.
struct Tally {
  std::int64_t slots = 0;
  std::int64_t tokens = 0;
  std::int64_t effective_tokens = 0;
  std::int64_t documents = 0;  // begun: pieces that hold a document's first token
  std::int64_t dropped_documents = 0;
  std::int64_t dropped_tokens = 0;
  std::int64_t truncated_documents = 0;
  std::int64_t split_documents = 0;
  std::int64_t empty_documents = 0;
  std::int64_t dummy_rows = 0;

  Tally& operator+=(const Tally& other);
};

struct SourceTally {
  int source = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t dropped_documents = 0;
  std::int64_t dropped_tokens = 0;
};

struct BinRef {
  std::shared_ptr<const WindowPlan> window;
  std::int64_t bin = 0;
};

// What one micro-batch of this rank holds, and what its delivery adds to the counts.
struct BatchSpec {
  std::vector<BinRef> rows;  // empty: one dummy row
  Cursor after;              // the cursor once this batch is delivered
  std::int64_t num_items_step = 0;         // effective tokens of the step on this rank
  std::int64_t num_items_step_global = 0;  // and on all ranks
  Tally rank_tally;
  Tally global_tally;
  std::vector<SourceTally> exposure;  // all ranks; only sources that changed
};

class Dealer {
 public:
  // A cursor at the very end of its epoch begins the next one.
  Dealer(std::shared_ptr<const Plan> plan, Geometry geometry, Cursor cursor);

  // The next micro-batch, or nothing at the end of the epoch.
  std::optional<BatchSpec> next();

  // After the end: counts that belong to no batch (documents dropped behind the last bin, bins cut
  // by drop_last) and the cursor at which the next epoch begins. `rows` is empty.
  const BatchSpec& end() const { return end_; }
  std::int64_t epoch() const { return cursor_.epoch; }

 private:
  bool gather_step();
  std::optional<BinRef> take_bin();
  void account(const BinRef& bin, bool own_rank, BatchSpec& spec) const;

  std::shared_ptr<const Plan> plan_;
  Geometry geometry_;
  Cursor cursor_;             // where the step being dealt begins, and what of it is dealt
  Cursor walk_;               // where the next bin is taken from
  std::shared_ptr<const WindowPlan> window_;
  std::vector<BinRef> step_;
  std::vector<std::int64_t> step_effective_;
  BatchSpec pending_;         // losses of windows entered but not yet attached to a batch
  BatchSpec end_;
  bool finished_ = false;
};

// Batches (of any one rank) from `cursor` to the end of its epoch. Packs lengths, reads no tokens.
std::int64_t count_batches(const Plan& plan, const Geometry& geometry, const Cursor& cursor);

}  // namespace brimful
