#include "plan/losses.hpp"

#include <cstddef>
#include <vector>

namespace brimful {

void add_losses(const Plan& plan, const WindowPlan& window, const Geometry& geometry,
                Delta& delta) {
  const Packing& packing = window.packing;
  const auto own = [&](std::int64_t i) { return i % geometry.world_size == geometry.rank; };
  const auto own_of = [&](std::int64_t n) {
    return (n + geometry.world_size - 1 - geometry.rank) / geometry.world_size;
  };
  delta.global.empty_documents += packing.empty_documents;
  delta.rank.empty_documents += own_of(packing.empty_documents);
  const auto lose = [&](const std::vector<Loss>& losses, std::int64_t documents) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const auto count = [&](Tally& tally) {
        tally.dropped_documents += documents;
        tally.truncated_documents += 1 - documents;
        tally.dropped_tokens += losses[i].tokens;
      };
      count(delta.global);
      if (own(static_cast<std::int64_t>(i))) count(delta.rank);
      SourceTally& source = delta.of_source(plan.corpus().source_of(losses[i].document));
      source.dropped_documents += documents;
      source.dropped_tokens += losses[i].tokens;
    }
  };
  lose(window.dropped, 1);
  lose(window.truncated, 0);
}

Delta losses_ahead(const Plan& plan, const Cursor& cursor, const Cursor& place,
                   std::int64_t bins_per_step) {
  Delta ahead;
  if (cursor.step_bins == 0) return ahead;
  std::int64_t taken = -cursor.bin;
  for (std::int64_t w = cursor.window; taken < bins_per_step && w < plan.num_windows(cursor.epoch);
       ++w) {
    const StepOrder order = w == cursor.window ? cursor.order : StepOrder{};
    const auto window = plan.look_at({cursor.epoch, w, order});
    if (w > place.window) add_losses(plan, *window, {}, ahead);
    taken += window->packing.num_bins();
  }
  ahead.rank = {};
  return ahead;
}

}  // namespace brimful
