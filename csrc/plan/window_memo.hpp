// The window that was looked at last, kept until it is dealt: a place is checked when its state is
// loaded and again when its stream begins, and to plan a window takes milliseconds.
//
// Threads: any. Nobody waits for another, who may not be there in a forked child: where the memo is
// in use it knows nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "plan/step_order.hpp"

namespace brimful {

struct WindowPlan;

// A window of an epoch, with its bins in an order.
struct WindowId {
  std::int64_t epoch = 0;
  std::int64_t window = 0;
  StepOrder order = {};
  bool operator==(const WindowId&) const = default;
};

class WindowMemo {
 public:
  void keep(const WindowId& id, std::shared_ptr<const WindowPlan> window);
  // Null unless that is the window kept.
  std::shared_ptr<const WindowPlan> find(const WindowId& id) const;
  // The same, and keeps it no longer.
  std::shared_ptr<const WindowPlan> take(const WindowId& id);

 private:
  mutable std::mutex mutex_;  // guards what follows
  WindowId id_;
  std::shared_ptr<const WindowPlan> window_;
};

}  // namespace brimful
