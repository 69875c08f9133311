#include "plan/cursor.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace brimful {
namespace {

std::string place(const Cursor& cursor) {
  return "epoch " + std::to_string(cursor.epoch) + ", window " + std::to_string(cursor.window) +
         ", bin " + std::to_string(cursor.bin);
}

// Of the window that a cursor stands in, which will be dealt next, perhaps.
std::int64_t bins_of_window(const Plan& plan, const Cursor& c) {
  return plan.look_at({c.epoch, c.window, c.order})->packing.num_bins();
}

}  // namespace

Geometry checked(const Geometry& g) {
  const auto at_least_one = [](std::int64_t value, const char* name) {
    if (value < 1) {
      throw PlanError(std::string(name) + " is " + std::to_string(value) +
                      "; it must be at least 1");
    }
  };
  at_least_one(g.batch_size, "batch_size");
  at_least_one(g.world_size, "world_size");
  at_least_one(g.accumulate, "accumulate");
  if (g.rank < 0 || g.rank >= g.world_size) {
    throw PlanError("rank is " + std::to_string(g.rank) + " but world_size is " +
                    std::to_string(g.world_size) + "; ranks go from 0 to world_size - 1");
  }
  constexpr std::int64_t kMostRanks = 1 << 20;  // their work is counted in every step
  if (g.world_size > kMostRanks) {
    throw PlanError("world_size is " + std::to_string(g.world_size) + "; it must be at most " +
                    std::to_string(kMostRanks));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (g.batch_size > kMost / g.world_size || g.bins_per_batch() > kMost / g.accumulate) {
    throw PlanError("a step of batch_size x world_size x accumulate = " +
                    std::to_string(g.batch_size) + " x " + std::to_string(g.world_size) + " x " +
                    std::to_string(g.accumulate) + " bins is more than 2^31");
  }
  return g;
}

void check(const Plan& plan, const Cursor& c) {
  const std::int64_t most_epochs = plan.most_epochs();
  if (c.epoch >= most_epochs) {
    throw StateError("epoch " + std::to_string(c.epoch) + " is beyond the " +
                     std::to_string(most_epochs) + " epochs that can be numbered");
  }
  const std::int64_t num_windows = c.epoch < 0 ? 0 : plan.num_windows(c.epoch);
  if (c.epoch < 0 || c.window < 0 || c.bin < 0 || c.step_bins < 0 || c.step < 0 ||
      c.window > num_windows) {
    throw StateError("the state's place (" + place(c) + ") does not exist: that epoch has " +
                     std::to_string(num_windows) + " windows");
  }
  const StepOrder& order = c.order;
  const bool in_steps = order.step >= 1 && order.phase >= 0 && order.phase < order.step;
  if (plan.config().balance && c.bin > 0 ? !in_steps : order != StepOrder{}) {
    throw StateError("the state's place (" + place(c) + ") has bins in steps of " +
                     std::to_string(order.step) + ", the first of them " +
                     std::to_string(order.phase) +
                     " short; that is no order that this run can have had");
  }
  if (c.bin == 0 && c.step_bins == 0) return;
  const std::int64_t bins = c.window < num_windows ? bins_of_window(plan, c) : 0;
  if (c.bin > bins) {
    throw StateError("the state's place (" + place(c) + ") does not exist: that window has " +
                     std::to_string(bins) + " bins");
  }
  if (c.step_bins == 0) return;
  // A step whose last bin is delivered is behind the cursor.
  std::int64_t rest = bins - c.bin;
  for (std::int64_t w = c.window + 1; rest <= c.step_bins && w < num_windows; ++w) {
    rest += plan.num_bins(c.epoch, w);
  }
  if (rest <= c.step_bins) {
    throw StateError("the state's place (" + place(c) + ") is that of a step of which " +
                     std::to_string(c.step_bins) +
                     " bins are delivered and more are to come, but its epoch has " +
                     std::to_string(rest) + " bins from there on");
  }
}

std::int64_t count_batches(const Plan& plan, const Geometry& geometry, const Cursor& cursor,
                           const StepSet& skip, std::int64_t steps_before,
                           const std::function<void()>& on_window) {
  checked(geometry);
  check(plan, cursor);
  std::int64_t bins = -cursor.bin - cursor.step_bins;
  for (std::int64_t w = cursor.window; w < plan.num_windows(cursor.epoch); ++w) {
    if (on_window) on_window();
    bins += plan.num_bins(cursor.epoch, w);
  }
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t per_step = geometry.bins_per_step();
  const std::int64_t per_batch = geometry.bins_per_batch();
  if (bins <= 0) return 0;
  std::int64_t batches = 0;
  std::int64_t step = steps_before + cursor.step;
  if (cursor.step_bins > 0) {  // the rest of a step begun under another split of it
    const std::int64_t rest = per_step - cursor.step_bins;
    if (bins < rest && geometry.drop_last) return 0;
    batches += ceil_div(std::min(bins, rest), per_batch);
    bins -= std::min(bins, rest);
    ++step;
  }
  const std::int64_t whole = bins / per_step;
  batches += (whole - skip.count(step, step + whole)) * geometry.accumulate;
  if (geometry.drop_last || skip.contains(step + whole)) return batches;
  return batches + ceil_div(bins % per_step, per_batch);
}

Cursor untouched_window(const Plan& plan, const Cursor& cursor, std::int64_t bins_per_step) {
  check(plan, cursor);
  Cursor at{.epoch = cursor.epoch, .window = cursor.window, .order = cursor.order};
  std::int64_t taken = cursor.bin + (cursor.step_bins > 0 ? bins_per_step : 0);
  for (; taken > 0 && at.window < plan.num_windows(at.epoch); ++at.window, at.order = {}) {
    taken -= bins_of_window(plan, at);
  }
  if (at.window > 0 && at.window == plan.num_windows(at.epoch)) return {.epoch = at.epoch + 1};
  return at;
}

Cursor settled(const Plan& plan, const Cursor& cursor, std::int64_t bins_per_step) {
  check(plan, cursor);
  Cursor at = cursor;
  at.step_bins = 0;
  at.step += cursor.step_bins > 0 ? 1 : 0;
  std::int64_t passed = 0;  // bins of the step, in windows before
  for (; at.window < plan.num_windows(at.epoch); ++at.window, at.bin = 0) {
    if (at.bin == 0 && plan.config().balance) {
      at.order = {bins_per_step, (bins_per_step - passed) % bins_per_step};
    }
    const std::int64_t rest = bins_of_window(plan, at) - at.bin;
    if (cursor.step_bins - passed <= rest) {
      at.bin += cursor.step_bins - passed;
      break;
    }
    passed += rest;
  }
  if (at.bin == 0) at.order = {};  // not begun
  return at;
}

}  // namespace brimful
