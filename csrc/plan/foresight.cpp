#include "plan/foresight.hpp"

namespace brimful {

std::shared_ptr<const WindowPlan> Foresight::take(const WindowId& id) {
  {
    std::unique_lock lock(mutex_);
    wanted_ = false;
    done_.wait(lock, [this] { return !planning_; });
    std::shared_ptr<const WindowPlan> planned = std::exchange(planned_, nullptr);
    if (planned != nullptr && expected_ == id) return planned;
  }
  return plan_->to_deal(id);
}

void Foresight::expect(const WindowId& id) {
  const std::lock_guard lock(mutex_);
  expected_ = id;
  wanted_ = true;
}

void Foresight::plan_ahead() {
  if (!wanted_) return;
  WindowId id;
  {
    const std::lock_guard lock(mutex_);
    if (!wanted_) return;
    wanted_ = false;
    planning_ = true;
    id = *expected_;
  }
  std::shared_ptr<const WindowPlan> planned;
  try {
    planned = plan_->to_deal(id);
  } catch (...) {
    planned = nullptr;  // take() plans it again, and meets the error
  }
  const std::lock_guard lock(mutex_);
  planning_ = false;
  planned_ = std::move(planned);
  done_.notify_all();
}

}  // namespace brimful
