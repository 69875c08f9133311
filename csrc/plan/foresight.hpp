// Foresight: plans the window that comes after the one being dealt while batches of that one are
// made, so that nobody waits at its end. One window ahead, no more.
//
// Threads: plan_ahead() from any thread, take() and expect() from one at a time. What goes wrong
// ahead of time is not told: the window is planned again when it is taken, and fails there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "plan/plan.hpp"

namespace brimful {

class Foresight {
 public:
  explicit Foresight(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  // That window, which may have been planned already.
  std::shared_ptr<const WindowPlan> take(const WindowId& id);
  // The window that will be taken next.
  void expect(const WindowId& id);
  // Plans the expected window, unless that is done or under way.
  void plan_ahead();

 private:
  std::shared_ptr<const Plan> plan_;
  std::atomic<bool> wanted_{false};  // there is something to plan; written under mutex_
  std::mutex mutex_;                 // guards everything below
  std::condition_variable done_;
  bool planning_ = false;
  std::optional<WindowId> expected_;
  std::shared_ptr<const WindowPlan> planned_;  // the expected window, once it is
};

}  // namespace brimful
