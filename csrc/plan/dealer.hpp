// The dealer walks the plan: it takes the bins of one epoch in order, groups them into optimizer
// steps of the global batch, and hands out this rank's rows of one micro-batch after the other. All
// ranks walk the same bins, so counts of the whole step are known without communication.
//
// Of each `world_size` consecutive bins of a step every rank gets one, as row j of micro-batch m
// for number `m * batch_size + j` of them: rank r gets bin r, or, under PlanConfig::balance, the
// costliest goes to the rank that has the least work so far. Rows in an order from outside
// (PlanConfig::rows) go to ranks as Megatron deals them: of a micro-batch, rank r gets the r-th
// `batch_size` consecutive ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan/cursor.hpp"
#include "plan/foresight.hpp"
#include "plan/plan.hpp"
#include "plan/step_set.hpp"
#include "plan/tally.hpp"

namespace brimful {

struct BinRef {
  std::shared_ptr<const WindowPlan> window;
  std::int64_t bin = 0;
};

// One micro-batch of this rank, and what its delivery adds to the counts.
struct BatchSpec {
  std::vector<BinRef> rows;  // empty: one dummy row
  std::int64_t width = 0;    // tokens of a row, tail included
  std::int64_t epoch = 0;
  std::int64_t step = 0;                   // in its epoch
  std::int64_t micro_batch = 0;            // in its step
  Cursor after;                            // the cursor once this batch is delivered
  std::int64_t num_items_step = 0;         // effective tokens of the step on this rank
  std::int64_t num_items_step_global = 0;  // and on all ranks
  Delta delta;
};

// All bins of a step, and the rank that each of them goes to.
struct StepBins {
  std::vector<BinRef> bins;
  std::vector<std::int64_t> ranks;
};

// Deals the rest of one epoch. One caller at a time.
class Dealer {
 public:
  // Throws StateError for a cursor that does not fit the plan. A cursor behind the last batch of
  // its epoch deals the next epoch, or where that was the run's last one nothing, so that what its
  // end adds to the counts is counted. Steps in `skip`, whose numbers go through the run, are left
  // out and counted, but one that has begun is finished; `steps_before` says how many steps the
  // epochs before the cursor's have.
  Dealer(std::shared_ptr<const Plan> plan, Geometry geometry, Cursor cursor, StepSet skip = {},
         std::int64_t steps_before = 0);

  std::int64_t epoch() const { return cursor_.epoch; }
  // Steps of the epochs before that one, as far as they were told or passed.
  std::int64_t steps_before() const { return steps_before_; }
  // The next micro-batch, or nothing at the end of the epoch.
  std::optional<BatchSpec> next();
  // Whether next() has a batch without a window that is not planned yet. By the one caller.
  bool at_hand() const;
  // Plans the window that next() will want after this one. From any thread, beside the one caller.
  void plan_ahead() const { foresight_->plan_ahead(); }
  // What the end of the epoch adds to the counts: documents dropped behind the last bin, bins left
  // out by drop_last. Complete once next() has returned nothing.
  const Delta& end() const { return pending_; }
  // Steps of the epoch; complete at the same time.
  std::int64_t steps() const { return cursor_.step; }
  // The step whose batches are dealt, or will be next; no bins at the end of the epoch. Reads
  // lengths only.
  StepBins step();

 private:
  bool gather_step();
  void take_step();
  void weigh_step();
  Delta contents(std::size_t first_bin) const;
  void skip_step();
  StepOrder order_after(std::int64_t gathered) const;
  std::optional<BinRef> take_bin();
  void add_slots(std::int64_t begin, std::int64_t end, BatchSpec& spec) const;
  std::vector<std::int64_t> deal_step() const;
  std::int64_t block() const;
  double step_imbalance() const;
  std::span<const std::int64_t> labels_of(std::size_t i) const;
  // Without `labels` a bin counts for its documents and tokens alone.
  void add_bin(const BinRef& bin, std::span<const std::int64_t> labels, bool own,
               Delta& delta) const;
  void drop_rest_of_step();

  std::shared_ptr<const Plan> plan_;
  Geometry geometry_;
  StepSet skip_;
  std::int64_t steps_before_;
  Cursor cursor_;                 // where the step being dealt begins, and how much of it is dealt
  std::int64_t walk_window_ = 0;  // where the next bin is taken from
  std::int64_t walk_bin_ = 0;
  StepOrder walk_order_;        // of that window, once it is there
  std::int64_t first_bin_ = 0;  // bins of the first step that an earlier run delivered
  std::unique_ptr<Foresight> foresight_;
  std::shared_ptr<const WindowPlan> window_;
  std::vector<BinRef> step_;
  std::vector<std::int64_t> labels_;       // of the step's pieces, bin after bin
  std::vector<std::size_t> label_starts_;  // [bins of the step + 1], ranges into these; empty until
                                           // the first batch of the step
  std::vector<std::int64_t> ranks_;        // that the bins of the step go to
  std::int64_t num_items_step_ = 0;
  std::int64_t num_items_step_global_ = 0;
  Evenness evenness_;  // of the step
  Delta pending_;      // not yet attached to a batch
  bool finished_ = false;
};

}  // namespace brimful
