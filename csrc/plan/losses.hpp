// Losses: what the overlong rule and empty documents take from windows. They belong to no bin, so
// they are counted with the first step that takes a bin of their window, or passes it.
#pragma once

#include <cstdint>

#include "plan/cursor.hpp"
#include "plan/plan.hpp"
#include "plan/tally.hpp"

namespace brimful {

// Adds the losses of a window; ranks share them in turn.
void add_losses(const Plan& plan, const WindowPlan& window, const Geometry& geometry, Delta& delta);

// The losses that a half-delivered step of `bins_per_step` bins at `cursor` has counted already of
// windows behind `place`, where the step is cut off by a change of the global batch: the steps that
// come next count them again. All ranks; this rank's share is left out.
Delta losses_ahead(const Plan& plan, const Cursor& cursor, const Cursor& place,
                   std::int64_t bins_per_step);

}  // namespace brimful
