// Cursors: places in the plan, counted in bins delivered over all ranks, and the geometry of steps
// and batches that bins are dealt by.
#pragma once

#include <cstdint>
#include <functional>

#include "plan/plan.hpp"
#include "plan/step_order.hpp"
#include "plan/step_set.hpp"

namespace brimful {

// Where delivery stands: the bin at which the current step begins, and how many bins of that step
// have been delivered, over all ranks. Independent of world size, threads and read-ahead.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t window = 0;
  std::int64_t bin = 0;        // in the window; may equal its number of bins
  std::int64_t step_bins = 0;  // bins of this step already delivered
  StepOrder order = {};  // of the window, where bins of it were delivered under PlanConfig::balance
  std::int64_t step = 0;  // number of the current step in its epoch
  bool operator==(const Cursor&) const = default;
};

// How bins become batches. None of this changes the order of bins.
struct Geometry {
  std::int64_t batch_size = 1;  // bins a rank and micro-batch
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::int64_t accumulate = 1;  // micro-batches a step
  bool drop_last = false;       // leave out the last, incomplete step of an epoch, counted
  bool trim = false;            // a batch is as wide as its longest row, else seq_len

  std::int64_t bins_per_batch() const { return batch_size * world_size; }
  std::int64_t bins_per_step() const { return batch_size * world_size * accumulate; }
};

// The same geometry; throws PlanError for one that cannot be.
Geometry checked(const Geometry& geometry);

// Throws StateError for a cursor at a place that the plan does not have.
void check(const Plan& plan, const Cursor& cursor);

// Batches of any one rank from `cursor` to the end of its epoch, without those of skipped steps;
// `steps_before` counts the steps of the epochs before. Packs lengths, reads no tokens. Calls
// `on_window`, which may throw, before each window that it packs.
std::int64_t count_batches(const Plan& plan, const Geometry& geometry, const Cursor& cursor,
                           const StepSet& skip = {}, std::int64_t steps_before = 0,
                           const std::function<void()>& on_window = {});

// The first window at or behind a place from which no step that has begun takes bins, as a cursor:
// there the mix may change. Steps are of `bins_per_step` bins.
Cursor untouched_window(const Plan& plan, const Cursor& cursor, std::int64_t bins_per_step);

// The same place as a cursor at the start of a step, for a change of the global batch from
// `bins_per_step` bins.
Cursor settled(const Plan& plan, const Cursor& cursor, std::int64_t bins_per_step);

}  // namespace brimful
