#include "plan/window_memo.hpp"

#include <utility>

namespace brimful {

void WindowMemo::keep(const WindowId& id, std::shared_ptr<const WindowPlan> window) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  id_ = id;
  window_.swap(window);  // the other one goes after the lock
}

std::shared_ptr<const WindowPlan> WindowMemo::find(const WindowId& id) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && id_ == id ? window_ : nullptr;
}

std::shared_ptr<const WindowPlan> WindowMemo::take(const WindowId& id) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && id_ == id ? std::exchange(window_, nullptr) : nullptr;
}

}  // namespace brimful
