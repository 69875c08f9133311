// Times: sums that any thread may add to and read, what one thread spends its time on, and what one
// batch took. A stopwatch adds its own lifetime to a sum, so that a wait or a piece of work is
// counted however it ends.
#pragma once

#include <algorithm>
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

// Of the calling thread; no other one ever has it, while an id goes to the next thread at once.
inline std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> last{0};
  static thread_local const std::uint64_t number = ++last;
  return number;
}

// Processor time of the pieces of work that a thread does one after the other. To read a thread's
// clock costs as much as two percent of a small batch, so it is read for pieces that begin kPause
// or more after the last reading, and at the end of those that last as long, of which what ran
// since the last reading may then count too. The others are taken to have run for the same part of
// their time as the last one that was read for.
class RunningMeter {
 public:
  static constexpr std::chrono::microseconds kPause{200};

  void begin(Clock::time_point now) {
    began_ = now;
    const std::uint64_t thread = thread_number();
    reads_ = now - read_at_ >= kPause || thread != thread_;
    if (reads_) read(now);
    thread_ = thread;
  }
  // Of `work`, which is what the piece consists of, how much the thread ran.
  Clock::duration end(Clock::time_point now, Clock::duration work) {
    if (!reads_ && now - began_ < kPause) {
      return std::chrono::duration_cast<Clock::duration>(part_ * work);
    }
    const Clock::duration before = clock_;
    read(now);
    const Clock::duration ran = std::min(clock_ - before, work);
    part_ = work > Clock::duration{} ? to_seconds(ran) / to_seconds(work) : 1;
    return ran;
  }

 private:
  void read(Clock::time_point now) {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    clock_ = std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
    read_at_ = now;
  }

  std::uint64_t thread_ = 0;
  Clock::time_point read_at_;
  Clock::duration clock_{};
  Clock::time_point began_;
  bool reads_ = false;
  double part_ = 1;
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
  std::int64_t thread = 0;  // the worker that made it; -1: the consumer
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
