#include "plan/foresight.hpp"

namespace brimful {

std::shared_ptr<const WindowPlan> Foresight::make(const Which& which) const {
  return std::make_shared<const WindowPlan>(plan_->window(which.epoch, which.window, which.order));
}

std::shared_ptr<const WindowPlan> Foresight::take(const Which& which) {
  {
    std::unique_lock lock(mutex_);
    wanted_ = false;
    done_.wait(lock, [this] { return !planning_; });
    std::shared_ptr<const WindowPlan> planned = std::exchange(planned_, nullptr);
    if (planned != nullptr && expected_ == which) return planned;
  }
  return make(which);
}

void Foresight::expect(const Which& which) {
  const std::lock_guard lock(mutex_);
  expected_ = which;
  wanted_ = true;
}

void Foresight::plan_ahead() {
  if (!wanted_) return;
  Which which;
  {
    const std::lock_guard lock(mutex_);
    if (!wanted_) return;
    wanted_ = false;
    planning_ = true;
    which = *expected_;
  }
  std::shared_ptr<const WindowPlan> planned;
  try {
    planned = make(which);
  } catch (...) {
    planned = nullptr;  // take() plans it again, and meets the error
  }
  const std::lock_guard lock(mutex_);
  planning_ = false;
  planned_ = std::move(planned);
  done_.notify_all();
}

}  // namespace brimful
