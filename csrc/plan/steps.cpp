#include "plan/steps.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "plan/dealer.hpp"

namespace brimful {
namespace {

// A run in which so many epochs have no step is not worth going on with.
constexpr int kMostEmptyEpochs = 64;
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

}  // namespace

Steps::Steps(std::shared_ptr<const Plan> plan, Geometry geometry, StepOrigin origin,
             std::function<void()> on_window)
    : plan_(std::move(plan)),
      geometry_(checked(geometry)),
      origin_(origin),
      on_window_(std::move(on_window)),
      before_{{origin.cursor.epoch, origin.number - origin.cursor.step}} {
  check(*plan_, origin_.cursor);
  if (origin_.cursor.step_bins != 0 || origin_.number < origin_.cursor.step) {
    throw StateError("the steps of the state are numbered from no step's beginning");
  }
}

std::int64_t Steps::before(std::int64_t epoch) {
  const std::scoped_lock lock(mutex_);
  return count_before(epoch);
}

std::optional<std::int64_t> Steps::known_before(std::int64_t epoch) const {
  const std::scoped_lock lock(mutex_);
  const auto known = before_.find(epoch);
  return known == before_.end() ? std::nullopt : std::optional(known->second);
}

void Steps::learn_before(std::int64_t epoch, std::int64_t steps) {
  const std::scoped_lock lock(mutex_);
  before_.emplace(epoch, steps);
}

void Steps::learn_count(std::int64_t epoch, std::int64_t steps) {
  const std::scoped_lock lock(mutex_);
  counted_.emplace(epoch, steps);
  const auto known = before_.find(epoch);
  if (known != before_.end()) before_.emplace(epoch + 1, known->second + steps);
}

std::int64_t Steps::count_before(std::int64_t epoch) {
  if (epoch < origin_.cursor.epoch) {
    throw PlanError("steps of epoch " + std::to_string(epoch) +
                    " cannot be numbered any more: the global batch changed in epoch " +
                    std::to_string(origin_.cursor.epoch));
  }
  auto known = std::prev(before_.upper_bound(epoch));
  for (; known->first < epoch; ++known) {
    const std::int64_t next = known->second + count(known->first);
    before_.emplace(known->first + 1, next);
  }
  return known->second;
}

// Steps of an epoch, counted from its beginning.
std::int64_t Steps::count(std::int64_t epoch) {
  const auto known = counted_.find(epoch);
  if (known != counted_.end()) return known->second;
  const std::int64_t bins = pack(epoch, 0, kAll) - first_bin(epoch);
  const std::int64_t step = geometry_.bins_per_step();
  const std::int64_t steps = bins / step + (!geometry_.drop_last && bins % step > 0 ? 1 : 0);
  const std::int64_t begun = epoch == origin_.cursor.epoch ? origin_.cursor.step : 0;
  return counted_.emplace(epoch, begun + steps).first->second;
}

// Packs windows of an epoch until there are so many of them and so many bins, or no more windows;
// returns the bins.
std::int64_t Steps::pack(std::int64_t epoch, std::int64_t windows, std::int64_t bins) {
  if (ends_epoch_ != epoch) {
    ends_.clear();
    ends_epoch_ = epoch;
  }
  const std::int64_t all = plan_->num_windows(epoch);
  std::int64_t packed = ends_.empty() ? 0 : ends_.back();
  for (auto w = static_cast<std::int64_t>(ends_.size()); w < all && (w < windows || packed < bins);
       ++w) {
    if (on_window_) on_window_();
    packed += plan_->num_bins(epoch, w);
    ends_.push_back(packed);
  }
  return packed;
}

// Bins of an epoch before those that are cut into steps as now.
std::int64_t Steps::first_bin(std::int64_t epoch) {
  if (epoch != origin_.cursor.epoch) return 0;
  const std::int64_t window = origin_.cursor.window;
  pack(epoch, window, 0);
  return (window == 0 ? 0 : ends_[static_cast<std::size_t>(window - 1)]) + origin_.cursor.bin;
}

// The beginning of a step.
Cursor Steps::locate(std::int64_t step) {
  if (step < origin_.number) {
    throw PlanError("step " + std::to_string(step) +
                    " cannot be told any more: the global batch changed at step " +
                    std::to_string(origin_.number));
  }
  auto known = std::prev(before_.end());
  while (known->second > step) --known;
  std::int64_t epoch = known->first;
  std::int64_t before = known->second;
  const std::int64_t per_step = geometry_.bins_per_step();
  // The first bin of the step, if it is one of the epoch.
  const auto bin_of_step = [&] {
    const std::int64_t begun = epoch == origin_.cursor.epoch ? origin_.cursor.step : 0;
    return first_bin(epoch) + std::min(step - before - begun, kAll / 4 / per_step) * per_step;
  };
  const std::int64_t least = geometry_.drop_last ? per_step : 1;  // bins that make a step
  int empty = 0;
  std::int64_t bin = bin_of_step();
  while (pack(epoch, 0, bin + least) - least < bin) {
    empty = count(epoch) == 0 ? empty + 1 : 0;
    if (empty == kMostEmptyEpochs) {
      throw PlanError("there is no step " + std::to_string(step) + ": epoch " +
                      std::to_string(epoch) + " and the " + std::to_string(kMostEmptyEpochs - 1) +
                      " before it have no step of " + std::to_string(per_step) + " bins");
    }
    plan_->check_epoch(epoch + 1);
    before = count_before(++epoch);
    bin = bin_of_step();
  }
  Cursor at{.epoch = epoch, .step = step - before};
  at.window = std::upper_bound(ends_.begin(), ends_.end(), bin) - ends_.begin();
  const std::int64_t start = at.window == 0 ? 0 : ends_[static_cast<std::size_t>(at.window - 1)];
  at.bin = bin - start;
  if (at.bin == 0 || !plan_->config().balance) return at;
  if (epoch == origin_.cursor.epoch && at.window == origin_.cursor.window &&
      origin_.cursor.bin > 0) {
    at.order = origin_.cursor.order;
  } else {
    at.order = {per_step, (per_step - (start - first_bin(epoch)) % per_step) % per_step};
  }
  return at;
}

Cursor Steps::begin(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  return locate(step);
}

StepPieces Steps::pieces(std::int64_t step) {
  const std::scoped_lock lock(mutex_);
  const Cursor begin = locate(step);
  const StepBins found = Dealer(plan_, geometry_, begin).step();
  StepPieces pieces;
  pieces.epoch = begin.epoch;
  std::vector<std::int32_t> rows;  // of each rank's micro-batch so far
  for (std::size_t i = 0; i < found.bins.size(); ++i) {
    const auto in_batch = static_cast<std::int64_t>(i) % geometry_.bins_per_batch();
    if (in_batch == 0) rows.assign(static_cast<std::size_t>(geometry_.world_size), 0);
    const std::int64_t rank = found.ranks[i];
    const std::int32_t row = rows[static_cast<std::size_t>(rank)]++;
    const WindowPlan& window = *found.bins[i].window;
    const auto bin = static_cast<std::size_t>(found.bins[i].bin);
    for (auto p = static_cast<std::size_t>(window.packing.bin_offsets[bin]);
         p < static_cast<std::size_t>(window.packing.bin_offsets[bin + 1]); ++p) {
      const std::int64_t document = window.packing.documents[p];
      pieces.documents.push_back(document);
      pieces.starts.push_back(window.packing.starts[p]);
      pieces.lengths.push_back(window.packing.lengths[p]);
      pieces.sources.push_back(plan_->corpus().source_of(document));
      pieces.ranks.push_back(static_cast<std::int32_t>(rank));
      pieces.micro_batches.push_back(
          static_cast<std::int32_t>(static_cast<std::int64_t>(i) / geometry_.bins_per_batch()));
      pieces.rows.push_back(row);
    }
  }
  return pieces;
}

}  // namespace brimful
