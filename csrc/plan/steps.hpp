// The numbers of the optimizer steps of a run, 0, 1, ... through all epochs, and what each of them
// holds: computed from the plan, for steps of the past and of the future alike. How many steps an
// epoch has is counted once, from lengths alone, and kept. Windows are packed as far as it takes.
//
// Threads: everything may be called from any thread; one call at a time is at work.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plan/cursor.hpp"
#include "plan/plan.hpp"

namespace brimful {

// Where a run began to be cut into the steps that it has now: at step `number` of the run. It lies
// at the start of a step.
struct StepOrigin {
  std::int64_t number = 0;
  Cursor cursor;
};

// The pieces of one step in the order of its bins, over all ranks.
struct StepPieces {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> documents;
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> sources;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> micro_batches;
  std::vector<std::int32_t> rows;  // in their rank's micro-batch
};

class Steps {
 public:
  // Counting calls `on_window` before each window that it packs. It may throw: what was counted is
  // kept. It must not come back here.
  Steps(std::shared_ptr<const Plan> plan, Geometry geometry, StepOrigin origin = {},
        std::function<void()> on_window = {});

  const StepOrigin& origin() const { return origin_; }
  // Steps of the run before an epoch. Throws PlanError for an epoch before the origin's.
  std::int64_t before(std::int64_t epoch);
  // The same where nothing has to be counted for it.
  std::optional<std::int64_t> known_before(std::int64_t epoch) const;
  // Tells what is known from elsewhere: before(epoch), and how many steps an epoch has.
  void learn_before(std::int64_t epoch, std::int64_t steps);
  void learn_count(std::int64_t epoch, std::int64_t steps);

  // Throws PlanError for a step that the run does not have, or that is older than the origin.
  StepPieces pieces(std::int64_t step);
  // Where a step begins. Throws as pieces() does.
  Cursor begin(std::int64_t step);

 private:
  std::int64_t count_before(std::int64_t epoch);
  std::int64_t count(std::int64_t epoch);
  Cursor locate(std::int64_t step);
  std::int64_t pack(std::int64_t epoch, std::int64_t windows, std::int64_t bins);
  std::int64_t first_bin(std::int64_t epoch);

  std::shared_ptr<const Plan> plan_;
  Geometry geometry_;
  StepOrigin origin_;
  std::function<void()> on_window_;

  mutable std::mutex mutex_;                      // guards everything below
  std::map<std::int64_t, std::int64_t> before_;   // of some epochs, the origin's among them
  std::map<std::int64_t, std::int64_t> counted_;  // steps of some epochs, numbered from their start
  std::int64_t ends_epoch_ = -1;                  // that `ends_` speaks of
  std::vector<std::int64_t> ends_;                // its bins up to the end of each window packed
};

}  // namespace brimful
