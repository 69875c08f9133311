#include "loader/pace.hpp"

namespace brimful {

void Pace::made(double seconds, bool reads_storage) {
  const double before = mean_.load(std::memory_order_relaxed);
  const double mean = before + (seconds - before) / kWeight;
  mean_.store(mean, std::memory_order_relaxed);
  change_to(!reads_storage && mean < (brisk() ? kEnds : kBegins));
}

void Pace::forget() {
  mean_.store(kUnknown, std::memory_order_relaxed);
  change_to(false);
}

void Pace::change_to(bool brisk) {
  if (brisk == this->brisk()) return;
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  brisk_.store(brisk, std::memory_order_relaxed);
  changed_.notify_all();
}

void Pace::wait_while_brisk(TimeSum& waited) {
  if (!brisk()) return;
  const Stopwatch watch(waited);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !brisk(); });
}

void Pace::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  brisk_.store(false, std::memory_order_relaxed);
  changed_.notify_all();
}

}  // namespace brimful
