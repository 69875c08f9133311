// Times: sums that any thread may add to and read, what one thread spends its time on, and what one
// batch took. A stopwatch adds its own lifetime to a sum, so that a wait or a piece of work is
// counted however it ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace brimful {

using Clock = std::chrono::steady_clock;

inline double to_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

class TimeSum {
 public:
  void add(Clock::duration time) { ticks_.fetch_add(time.count(), std::memory_order_relaxed); }
  double seconds() const {
    return to_seconds(Clock::duration{ticks_.load(std::memory_order_relaxed)});
  }

 private:
  std::atomic<Clock::rep> ticks_{0};
};

// Processor time of the calling thread, by a clock of its own.
inline Clock::duration running_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

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

// What one thread that makes batches spends its time on.
struct ThreadTimes {
  TimeSum plan;          // claiming tickets: packing and dealing
  TimeSum read;          // getting bytes from files
  TimeSum fill;          // writing columns
  TimeSum backpressure;  // waiting for a slot
};

struct ThreadSeconds {
  double plan = 0;
  double read = 0;
  double fill = 0;
  double backpressure = 0;
};

inline ThreadSeconds to_seconds(const ThreadTimes& times) {
  return {times.plan.seconds(), times.read.seconds(), times.fill.seconds(),
          times.backpressure.seconds()};
}

// Places in time are seconds since the clock's epoch, as Python's perf_counter() tells them.
inline double place_of(Clock::time_point time) { return to_seconds(time.time_since_epoch()); }

// What one batch took, in seconds, and how the ring stood when it was asked for.
struct BatchTimes {
  double plan = 0;
  double read = 0;
  double fill = 0;
  double running = 0;             // of these three; else its thread waited, for storage or a core
  double stall = 0;               // in next(); 0 for the first batch, whose wait is counted apart
  std::int64_t queue_depth = 0;   // batches ready, this one included
  std::int64_t slots_in_use = 0;  // with the consumer, being filled, or ready
  double slot_asked = 0;  // when its thread asked for a slot, and got one; by Producer::now()
  double slot_granted = 0;
  std::int64_t thread = 0;  // that made it; 0 without workers, where the consumer does
  std::uintptr_t slot = 0;  // address of the memory that it was filled into
  bool first = false;       // of its stream
  // Places in time: its thread got a slot, claimed it, and was done; next() was called for it, and
  // returned it. An interrupted next() goes on when it is called again: the last call counts.
  double leased = 0;
  double claimed = 0;
  double filled = 0;
  double entered = 0;
  double taken = 0;
};

}  // namespace brimful
