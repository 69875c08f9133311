#include "plan/dealer.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/round_up.hpp"
#include "plan/losses.hpp"

namespace brimful {
namespace {

// Slots that the pieces of a bin take, each a multiple of `align`.
std::int64_t slots_of(const BinRef& bin, std::int64_t align) {
  const Packing& packing = bin.window->packing;
  const auto b = static_cast<std::size_t>(bin.bin);
  std::int64_t slots = 0;
  for (std::int64_t i = packing.bin_offsets[b]; i < packing.bin_offsets[b + 1]; ++i) {
    slots += round_up(packing.lengths[static_cast<std::size_t>(i)], align);
  }
  return slots;
}

std::int64_t cost_of(const BinRef& bin) {
  return bin.window->costs[static_cast<std::size_t>(bin.bin)];
}

}  // namespace

Dealer::Dealer(std::shared_ptr<const Plan> plan, Geometry geometry, Cursor cursor, StepSet skip,
               std::int64_t steps_before)
    : plan_(std::move(plan)),
      geometry_(checked(geometry)),
      skip_(std::move(skip)),
      steps_before_(steps_before),
      cursor_(cursor),
      foresight_(std::make_unique<Foresight>(plan_)) {
  check(*plan_, cursor_);
  walk_window_ = cursor_.window;
  walk_bin_ = cursor_.bin;
  walk_order_ = cursor_.order;
  first_bin_ = cursor_.step_bins;
  const bool at_start = cursor_ == Cursor{.epoch = cursor_.epoch};
  if (at_start) plan_->check_epoch(cursor_.epoch);
  if (at_start || gather_step() || plan_->is_over(cursor_.epoch + 1)) return;
  steps_before_ += cursor_.step;
  cursor_ = Cursor{.epoch = cursor_.epoch + 1};
  walk_window_ = 0;
  walk_bin_ = 0;
  first_bin_ = 0;
  window_.reset();
  walk_order_ = {};
  finished_ = false;
}

std::optional<BatchSpec> Dealer::next() {
  if (finished_ || (step_.empty() && !gather_step())) return std::nullopt;
  if (label_starts_.empty()) weigh_step();
  const std::int64_t begin = cursor_.step_bins;
  const std::int64_t end =
      std::min(begin + geometry_.bins_per_batch(), static_cast<std::int64_t>(step_.size()));
  BatchSpec spec;
  spec.epoch = cursor_.epoch;
  spec.step = cursor_.step;
  spec.micro_batch = begin / geometry_.bins_per_batch();
  spec.delta = std::exchange(pending_, {});
  spec.num_items_step = num_items_step_;
  spec.num_items_step_global = num_items_step_global_;
  for (std::int64_t i = begin; i < end; ++i) {
    const bool own = ranks_[static_cast<std::size_t>(i)] == geometry_.rank;
    const BinRef& bin = step_[static_cast<std::size_t>(i)];
    add_bin(bin, labels_of(static_cast<std::size_t>(i)), own, spec.delta);
    if (own) spec.rows.push_back(bin);
  }
  add_slots(begin, end, spec);
  if (spec.rows.empty()) spec.delta.rank.dummy_rows += 1;
  const std::int64_t ranks_with_rows =
      std::min((end - begin + block() - 1) / block(), geometry_.world_size);
  spec.delta.global.dummy_rows += geometry_.world_size - ranks_with_rows;

  cursor_.step_bins = end;
  if (end == static_cast<std::int64_t>(step_.size())) {
    cursor_ = {cursor_.epoch, walk_window_, walk_bin_, 0, walk_order_, cursor_.step + 1};
    spec.delta.evenness += evenness_;
    step_.clear();
  }
  spec.after = cursor_;
  return spec;
}

bool Dealer::at_hand() const {
  if (!step_.empty()) return true;
  return window_ != nullptr && !skip_.contains(steps_before_ + cursor_.step) &&
         walk_bin_ + geometry_.bins_per_step() <= window_->packing.num_bins();
}

StepBins Dealer::step() {
  if (finished_ || (step_.empty() && !gather_step())) return {};
  return {step_, ranks_};
}

// Takes the bins of the next step that is not skipped. False at the end of the epoch.
bool Dealer::gather_step() {
  while (true) {
    take_step();
    const bool begun = first_bin_ > 0;
    const bool complete = static_cast<std::int64_t>(step_.size()) == geometry_.bins_per_step();
    // What the windows of a half-delivered step lost was counted with its first batch.
    if (begun) pending_ = {};
    if (!complete && geometry_.drop_last) drop_rest_of_step();
    finished_ = static_cast<std::int64_t>(step_.size()) <= std::exchange(first_bin_, 0);
    if (finished_) {
      step_.clear();
      return false;
    }
    if (begun || !skip_.contains(steps_before_ + cursor_.step)) {
      evenness_ = {};
      // A step that an earlier run began had other ranks, perhaps.
      if (complete && !begun) evenness_ = {.steps = 1, .imbalance = step_imbalance()};
      return true;
    }
    skip_step();
  }
}

// As many bins as a step has, or as there are, and their ranks.
void Dealer::take_step() {
  step_.clear();
  labels_.clear();
  label_starts_.clear();
  while (static_cast<std::int64_t>(step_.size()) < geometry_.bins_per_step()) {
    auto bin = take_bin();
    if (!bin) break;
    step_.push_back(std::move(*bin));
  }
  ranks_ = deal_step();
}

// Counts the labels of the step.
void Dealer::weigh_step() {
  labels_.clear();
  label_starts_.assign(1, 0);
  num_items_step_ = 0;
  num_items_step_global_ = 0;
  for (std::size_t i = 0; i < step_.size(); ++i) {
    num_items_step_global_ += plan_->effective_tokens(*step_[i].window, step_[i].bin, labels_);
    label_starts_.push_back(labels_.size());
    if (ranks_[i] != geometry_.rank) continue;
    const std::span<const std::int64_t> labels = labels_of(i);
    num_items_step_ += std::accumulate(labels.begin(), labels.end(), std::int64_t{0});
  }
}

// The rank that each bin of the step goes to. Turns are counted from the first bin dealt here; what
// was dealt before follows the same pattern.
std::vector<std::int64_t> Dealer::deal_step() const {
  const std::int64_t phase = first_bin_ % (geometry_.world_size * block());
  if (!plan_->config().balance) {
    return deal_in_turn(step_.size(), geometry_.world_size, phase, block());
  }
  std::vector<std::int64_t> costs;
  costs.reserve(step_.size());
  for (const BinRef& bin : step_) costs.push_back(cost_of(bin));
  return deal_by_cost(costs, geometry_.world_size, phase);
}

// Consecutive bins that go to one rank.
std::int64_t Dealer::block() const {
  return plan_->config().rows == nullptr ? 1 : geometry_.batch_size;
}

// Max / mean of the attention work that the ranks have in this step.
double Dealer::step_imbalance() const {
  std::vector<double> costs(static_cast<std::size_t>(geometry_.world_size));
  double all = 0;
  for (std::size_t i = 0; i < step_.size(); ++i) {
    const auto cost = static_cast<double>(cost_of(step_[i]));
    costs[static_cast<std::size_t>(ranks_[i])] += cost;
    all += cost;
  }
  return *std::max_element(costs.begin(), costs.end()) * static_cast<double>(costs.size()) / all;
}

// Slots of the bins begin .. end of the step, on this rank and on all, and the width of its rows.
void Dealer::add_slots(std::int64_t begin, std::int64_t end, BatchSpec& spec) const {
  const std::int64_t seq_len = plan_->config().seq_len;
  const std::int64_t align = plan_->config().packing.align;
  std::vector<std::int64_t> widths(static_cast<std::size_t>(geometry_.world_size),
                                   geometry_.trim ? align : seq_len);  // align: of a dummy row
  const auto width = [&](std::int64_t i) -> std::int64_t& {
    return widths[static_cast<std::size_t>(ranks_[static_cast<std::size_t>(i)])];
  };
  for (std::int64_t i = begin; geometry_.trim && i < end; ++i) {
    width(i) = std::max(width(i), slots_of(step_[static_cast<std::size_t>(i)], align));
  }
  for (std::int64_t i = begin; i < end; ++i) spec.delta.global.slots += width(i);
  spec.width = widths[static_cast<std::size_t>(geometry_.rank)];
  spec.delta.rank.slots += spec.width * static_cast<std::int64_t>(spec.rows.size());
}

// Documents and tokens of the step from a bin on.
Delta Dealer::contents(std::size_t first_bin) const {
  Delta delta;
  for (std::size_t i = first_bin; i < step_.size(); ++i) {
    add_bin(step_[i], {}, ranks_[i] == geometry_.rank, delta);
  }
  return delta;
}

void Dealer::drop_rest_of_step() {
  const Delta rest = contents(static_cast<std::size_t>(cursor_.step_bins));
  pending_.rank.dropped_documents += rest.rank.documents;
  pending_.rank.dropped_tokens += rest.rank.tokens;
  pending_.global.dropped_documents += rest.global.documents;
  pending_.global.dropped_tokens += rest.global.tokens;
  for (const SourceTally& tally : rest.exposure) {
    SourceTally& dropped = pending_.of_source(tally.source);
    dropped.dropped_documents += tally.documents;
    dropped.dropped_tokens += tally.tokens;
  }
  step_.clear();
}

void Dealer::skip_step() {
  const Delta all = contents(0);
  const auto skip = [](const Tally& tally, Tally& pending) {
    pending.skipped_steps += 1;
    pending.skipped_documents += tally.documents;
    pending.skipped_tokens += tally.tokens;
  };
  skip(all.rank, pending_.rank);
  skip(all.global, pending_.global);
  for (const SourceTally& tally : all.exposure) {
    SourceTally& skipped = pending_.of_source(tally.source);
    skipped.skipped_documents += tally.documents;
    skipped.skipped_tokens += tally.tokens;
  }
  cursor_ = {cursor_.epoch, walk_window_, walk_bin_, 0, walk_order_, cursor_.step + 1};
  step_.clear();
}

// The step order of a window that begins when `gathered` bins of the running step, or of whole
// steps before it too, are there.
StepOrder Dealer::order_after(std::int64_t gathered) const {
  if (!plan_->config().balance) return {};
  const std::int64_t step = geometry_.bins_per_step();
  return {step, (step - gathered % step) % step};
}

std::optional<BinRef> Dealer::take_bin() {
  while (true) {
    if (window_ == nullptr) {
      if (walk_window_ >= plan_->num_windows(cursor_.epoch)) return std::nullopt;
      const auto gathered = static_cast<std::int64_t>(step_.size());
      if (walk_bin_ == 0) walk_order_ = order_after(gathered);
      window_ = foresight_->take({cursor_.epoch, walk_window_, walk_order_});
      if (walk_bin_ == 0) add_losses(*plan_, *window_, geometry_, pending_);
      if (walk_window_ + 1 < plan_->num_windows(cursor_.epoch)) {
        const std::int64_t rest = window_->packing.num_bins() - walk_bin_;
        foresight_->expect({cursor_.epoch, walk_window_ + 1, order_after(gathered + rest)});
      }
    }
    if (walk_bin_ < window_->packing.num_bins()) return BinRef{window_, walk_bin_++};
    ++walk_window_;
    walk_bin_ = 0;
    walk_order_ = {};
    window_.reset();
  }
}

// Labels of the pieces of bin i of the step.
std::span<const std::int64_t> Dealer::labels_of(std::size_t i) const {
  return std::span(labels_).subspan(label_starts_[i], label_starts_[i + 1] - label_starts_[i]);
}

void Dealer::add_bin(const BinRef& bin, std::span<const std::int64_t> labels, bool own,
                     Delta& delta) const {
  const Packing& packing = bin.window->packing;
  const auto begin =
      static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(bin.bin)]);
  const auto end =
      static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(bin.bin) + 1]);
  Tally tally{.bins = 1};
  for (std::size_t i = begin; i < end; ++i) {
    const std::int64_t begun = packing.starts[i] == 0 ? 1 : 0;
    const std::int64_t effective = labels.empty() ? 0 : labels[i - begin];
    tally.tokens += packing.lengths[i];
    tally.effective_tokens += effective;
    tally.documents += begun;
    tally.split_documents += bin.window->kinds[i] == PieceKind::kFirstOfSplit ? 1 : 0;
    SourceTally& source = delta.of_source(plan_->corpus().source_of(packing.documents[i]));
    source.documents += begun;
    source.tokens += packing.lengths[i];
    source.effective_tokens += effective;
  }
  delta.global += tally;
  if (own) delta.rank += tally;
}

}  // namespace brimful
