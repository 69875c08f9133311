// Sums of time that any thread may add to and read. A stopwatch adds its own lifetime, so that a
// wait or a piece of work is counted however it ends.
#pragma once

#include <atomic>
#include <chrono>

namespace brimful {

using Clock = std::chrono::steady_clock;

class TimeSum {
 public:
  void add(Clock::duration time) { ticks_.fetch_add(time.count(), std::memory_order_relaxed); }
  double seconds() const {
    const Clock::duration time{ticks_.load(std::memory_order_relaxed)};
    return std::chrono::duration<double>(time).count();
  }

 private:
  std::atomic<Clock::rep> ticks_{0};
};

class Stopwatch {
 public:
  explicit Stopwatch(TimeSum& sum) : sum_(sum) {}
  ~Stopwatch() { sum_.add(elapsed()); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  Clock::duration elapsed() const { return Clock::now() - begin_; }

 private:
  TimeSum& sum_;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace brimful
