#include "plan/dealer.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace brimful {
namespace {

std::string place(const Cursor& cursor) {
  return "epoch " + std::to_string(cursor.epoch) + ", window " + std::to_string(cursor.window) +
         ", bin " + std::to_string(cursor.bin);
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
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (g.batch_size > kMost / g.world_size || g.bins_per_batch() > kMost / g.accumulate) {
    throw PlanError("a step of batch_size x world_size x accumulate = " +
                    std::to_string(g.batch_size) + " x " + std::to_string(g.world_size) + " x " +
                    std::to_string(g.accumulate) + " bins is more than 2^31");
  }
  return g;
}

void check(const Plan& plan, const Cursor& c) {
  // Draws are numbered through all epochs in 64 bits.
  const std::int64_t most_epochs =
      (std::int64_t{1} << 62) / std::max<std::int64_t>(1, plan.sampler().epoch_draws());
  if (c.epoch >= most_epochs) {
    throw StateError("epoch " + std::to_string(c.epoch) + " is beyond the " +
                     std::to_string(most_epochs) + " epochs that can be numbered");
  }
  if (c.epoch < 0 || c.window < 0 || c.bin < 0 || c.step_bins < 0 ||
      c.window > plan.num_windows()) {
    throw StateError("the state's place (" + place(c) + ") does not exist: an epoch has " +
                     std::to_string(plan.num_windows()) + " windows");
  }
  const std::int64_t bins = c.bin == 0 || c.window == plan.num_windows()
                                ? 0
                                : plan.window(c.epoch, c.window).packing.num_bins();
  if (c.bin > bins) {
    throw StateError("the state's place (" + place(c) + ") does not exist: that window has " +
                     std::to_string(bins) + " bins");
  }
}

Dealer::Dealer(std::shared_ptr<const Plan> plan, Geometry geometry, Cursor cursor)
    : plan_(std::move(plan)), geometry_(checked(geometry)), cursor_(cursor) {
  check(*plan_, cursor_);
  walk_window_ = cursor_.window;
  walk_bin_ = cursor_.bin;
  first_bin_ = cursor_.step_bins;
  const bool at_start = cursor_ == Cursor{.epoch = cursor_.epoch};
  if (at_start || gather_step()) return;
  cursor_ = Cursor{.epoch = cursor_.epoch + 1};
  walk_window_ = 0;
  walk_bin_ = 0;
  first_bin_ = 0;
  window_.reset();
  finished_ = false;
}

std::optional<BatchSpec> Dealer::next() {
  if (finished_ || (step_.empty() && !gather_step())) return std::nullopt;
  const std::int64_t begin = cursor_.step_bins;
  const std::int64_t end =
      std::min(begin + geometry_.bins_per_batch(), static_cast<std::int64_t>(step_.size()));
  BatchSpec spec;
  spec.delta = std::exchange(pending_, {});
  spec.num_items_step = num_items_step_;
  spec.num_items_step_global = num_items_step_global_;
  for (std::int64_t i = begin; i < end; ++i) {
    const bool own = (i - begin) % geometry_.world_size == geometry_.rank;
    const BinRef& bin = step_[static_cast<std::size_t>(i)];
    add_bin(bin, step_effective_[static_cast<std::size_t>(i)], own, spec.delta);
    if (own) spec.rows.push_back(bin);
  }
  if (spec.rows.empty()) spec.delta.rank.dummy_rows += 1;
  const std::int64_t ranks_with_rows = std::min(end - begin, geometry_.world_size);
  spec.delta.global.dummy_rows += geometry_.world_size - ranks_with_rows;

  cursor_.step_bins = end;
  if (end == static_cast<std::int64_t>(step_.size())) {
    cursor_ = {cursor_.epoch, walk_window_, walk_bin_, 0};
    step_.clear();
  }
  spec.after = cursor_;
  return spec;
}

// Takes the bins of the next step. False at the end of the epoch.
bool Dealer::gather_step() {
  step_.clear();
  step_effective_.clear();
  num_items_step_ = 0;
  num_items_step_global_ = 0;
  while (static_cast<std::int64_t>(step_.size()) < geometry_.bins_per_step()) {
    auto bin = take_bin();
    if (!bin) break;
    const std::int64_t effective = plan_->effective_tokens(*bin->window, bin->bin);
    // Ranks count from the first bin dealt here; what was dealt before follows the same pattern.
    const std::int64_t from_first = static_cast<std::int64_t>(step_.size()) - first_bin_;
    const std::int64_t rank =
        (from_first % geometry_.world_size + geometry_.world_size) % geometry_.world_size;
    if (rank == geometry_.rank) num_items_step_ += effective;
    num_items_step_global_ += effective;
    step_effective_.push_back(effective);
    step_.push_back(std::move(*bin));
  }
  // What the windows of a half-delivered step lost was counted with its first batch.
  if (first_bin_ > 0) pending_ = {};
  const bool complete = static_cast<std::int64_t>(step_.size()) == geometry_.bins_per_step();
  const bool delivered = static_cast<std::int64_t>(step_.size()) <= first_bin_;
  if (!complete && geometry_.drop_last) drop_rest_of_step();
  first_bin_ = 0;
  finished_ = delivered || step_.empty();
  return !finished_;
}

void Dealer::drop_rest_of_step() {
  for (auto i = static_cast<std::size_t>(cursor_.step_bins); i < step_.size(); ++i) {
    Delta bin;
    add_bin(step_[i], 0, static_cast<std::int64_t>(i) % geometry_.world_size == geometry_.rank,
            bin);
    pending_.rank.dropped_documents += bin.rank.documents;
    pending_.rank.dropped_tokens += bin.rank.tokens;
    pending_.global.dropped_documents += bin.global.documents;
    pending_.global.dropped_tokens += bin.global.tokens;
    for (const SourceTally& tally : bin.exposure) {
      SourceTally& dropped = pending_.of_source(tally.source);
      dropped.dropped_documents += tally.documents;
      dropped.dropped_tokens += tally.tokens;
    }
  }
  step_.clear();
}

std::optional<BinRef> Dealer::take_bin() {
  while (true) {
    if (window_ == nullptr) {
      if (walk_window_ >= plan_->num_windows()) return std::nullopt;
      window_ = std::make_shared<const WindowPlan>(plan_->window(cursor_.epoch, walk_window_));
      if (walk_bin_ == 0) add_losses(*window_);
    }
    if (walk_bin_ < window_->packing.num_bins()) return BinRef{window_, walk_bin_++};
    ++walk_window_;
    walk_bin_ = 0;
    window_.reset();
  }
}

// What the overlong rule took from a window. It belongs to no bin, so ranks share it in turn.
void Dealer::add_losses(const WindowPlan& window) {
  const Packing& packing = window.packing;
  const auto own = [&](std::int64_t i) { return i % geometry_.world_size == geometry_.rank; };
  const auto own_of = [&](std::int64_t n) {
    return (n + geometry_.world_size - 1 - geometry_.rank) / geometry_.world_size;
  };
  pending_.global.empty_documents += packing.empty_documents;
  pending_.rank.empty_documents += own_of(packing.empty_documents);
  const auto lose = [&](const std::vector<Loss>& losses, std::int64_t documents) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const auto count = [&](Tally& tally) {
        tally.dropped_documents += documents;
        tally.truncated_documents += 1 - documents;
        tally.dropped_tokens += losses[i].tokens;
      };
      count(pending_.global);
      if (own(static_cast<std::int64_t>(i))) count(pending_.rank);
      SourceTally& source = pending_.of_source(plan_->corpus().source_of(losses[i].document));
      source.dropped_documents += documents;
      source.dropped_tokens += losses[i].tokens;
    }
  };
  lose(window.dropped, 1);
  lose(window.truncated, 0);
}

void Dealer::add_bin(const BinRef& bin, std::int64_t effective, bool own, Delta& delta) const {
  const Packing& packing = bin.window->packing;
  const auto begin =
      static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(bin.bin)]);
  const auto end =
      static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(bin.bin) + 1]);
  Tally tally{.slots = packing.capacity, .effective_tokens = effective};
  for (std::size_t i = begin; i < end; ++i) {
    const std::int64_t begun = packing.starts[i] == 0 ? 1 : 0;
    tally.tokens += packing.lengths[i];
    tally.documents += begun;
    tally.split_documents += bin.window->kinds[i] == PieceKind::kFirstOfSplit ? 1 : 0;
    SourceTally& source = delta.of_source(plan_->corpus().source_of(packing.documents[i]));
    source.documents += begun;
    source.tokens += packing.lengths[i];
  }
  delta.global += tally;
  if (own) delta.rank += tally;
}

std::int64_t count_batches(const Plan& plan, const Geometry& geometry, const Cursor& cursor) {
  checked(geometry);
  check(plan, cursor);
  std::int64_t bins = -cursor.bin - cursor.step_bins;
  for (std::int64_t w = cursor.window; w < plan.num_windows(); ++w) {
    bins += plan.window(cursor.epoch, w).packing.num_bins();
  }
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t per_step = geometry.bins_per_step();
  const std::int64_t per_batch = geometry.bins_per_batch();
  if (bins <= 0) return 0;
  std::int64_t batches = 0;
  if (cursor.step_bins > 0) {  // the rest of a step begun under another split of it
    const std::int64_t rest = per_step - cursor.step_bins;
    if (bins < rest && geometry.drop_last) return 0;
    batches += ceil_div(std::min(bins, rest), per_batch);
    bins -= std::min(bins, rest);
  }
  batches += bins / per_step * geometry.accumulate;
  return batches + (geometry.drop_last ? 0 : ceil_div(bins % per_step, per_batch));
}

Cursor settled(const Plan& plan, const Cursor& cursor) {
  check(plan, cursor);
  Cursor at{cursor.epoch, cursor.window, cursor.bin + cursor.step_bins, 0};
  while (at.window < plan.num_windows()) {
    const std::int64_t bins = plan.window(at.epoch, at.window).packing.num_bins();
    if (at.bin <= bins) return at;
    at.bin -= bins;
    ++at.window;
  }
  at.bin = 0;
  return at;
}

}  // namespace brimful
