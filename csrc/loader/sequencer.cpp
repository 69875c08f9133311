#include "loader/sequencer.hpp"

#include <utility>

#include "core/error.hpp"

namespace brimful {

void Sequencer::publish(std::int64_t ticket, Delivered batch) {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  place(ticket) = std::move(batch);
  ++ready_;
  const bool awaited = ticket == next_;
  if (awaited) settle();
  lock.unlock();  // before waking a thread that needs it
  if (awaited) changed_.notify_one();
}

void Sequencer::end(std::int64_t ticket, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (ticket >= end_) return;
  end_ = ticket;
  error_ = std::move(error);
  settle();
  changed_.notify_one();
}

void Sequencer::close() {
  std::vector<std::optional<Delivered>> inside;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  settle();
  inside.swap(places_);
  changed_.notify_one();
}

void Sequencer::settle() {
  settled_.store(closed_ || next_ >= end_ || place(next_).has_value(), std::memory_order_release);
}

bool Sequencer::wait_for(std::chrono::nanoseconds slice) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, slice, [this] { return settled(); });
}

std::optional<Delivered> Sequencer::take() {
  const std::lock_guard lock(mutex_);
  if (next_ >= end_) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  if (closed_) throw Error("this iterator is closed; make a new one");
  std::optional<Delivered> batch = std::exchange(place(next_++), std::nullopt);
  --ready_;
  settle();
  return batch;
}

}  // namespace brimful
