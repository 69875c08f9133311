// The dealer walks the plan: it takes the bins of one epoch in order, groups them into optimizer
// steps of the global batch, and hands out this rank's rows of one micro-batch after the other. All
// ranks walk the same bins, so counts of the whole step are known without communication.
//
// Row j of micro-batch m on rank r is bin `(m * batch_size + j) * world_size + r` of its step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/plan.hpp"
#include "plan/tally.hpp"

namespace brimful {

// Where delivery stands: the bin at which the current step begins, and how many bins of that step
// have been delivered, over all ranks. Independent of world size, threads and read-ahead.
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

// The same geometry; throws PlanError for one that cannot be.
Geometry checked(const Geometry& geometry);

struct BinRef {
  std::shared_ptr<const WindowPlan> window;
  std::int64_t bin = 0;
};

// One micro-batch of this rank, and what its delivery adds to the counts.
struct BatchSpec {
  std::vector<BinRef> rows;                // empty: one dummy row
  Cursor after;                            // the cursor once this batch is delivered
  std::int64_t num_items_step = 0;         // effective tokens of the step on this rank
  std::int64_t num_items_step_global = 0;  // and on all ranks
  Delta delta;
};

// Deals the rest of one epoch. One caller at a time.
class Dealer {
 public:
  // Throws StateError for a cursor that does not fit the plan. A cursor behind the last batch of
  // its epoch deals the next epoch.
  Dealer(std::shared_ptr<const Plan> plan, Geometry geometry, Cursor cursor);

  std::int64_t epoch() const { return cursor_.epoch; }
  // The next micro-batch, or nothing at the end of the epoch.
  std::optional<BatchSpec> next();
  // What the end of the epoch adds to the counts: documents dropped behind the last bin, bins left
  // out by drop_last. Complete once next() has returned nothing.
  const Delta& end() const { return pending_; }

 private:
  bool gather_step();
  std::optional<BinRef> take_bin();
  void add_losses(const WindowPlan& window);
  void add_bin(const BinRef& bin, std::int64_t effective, bool own, Delta& delta) const;
  void drop_rest_of_step();

  std::shared_ptr<const Plan> plan_;
  Geometry geometry_;
  Cursor cursor_;                 // where the step being dealt begins, and how much of it is dealt
  std::int64_t walk_window_ = 0;  // where the next bin is taken from
  std::int64_t walk_bin_ = 0;
  std::int64_t first_bin_ = 0;  // bins of the first step that an earlier run delivered
  std::shared_ptr<const WindowPlan> window_;
  std::vector<BinRef> step_;
  std::vector<std::int64_t> step_effective_;
  std::int64_t num_items_step_ = 0;
  std::int64_t num_items_step_global_ = 0;
  Delta pending_;  // not yet attached to a batch
  bool finished_ = false;
};

// Throws StateError for a cursor at a place that the plan does not have.
void check(const Plan& plan, const Cursor& cursor);

// Batches of any one rank from `cursor` to the end of its epoch. Packs lengths, reads no tokens.
std::int64_t count_batches(const Plan& plan, const Geometry& geometry, const Cursor& cursor);

// The same place as a cursor at the start of a step, for a change of the global batch.
Cursor settled(const Plan& plan, const Cursor& cursor);

}  // namespace brimful
