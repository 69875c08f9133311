// The pace at which batches are made. At a brisk one a batch takes less time than threads lose that
// sleep and wake for it, and so nobody sleeps: the consumer makes one itself where none is ready,
// and workers for whom that leaves no core rest.
//
// Threads: everything may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "loader/telemetry.hpp"

namespace brimful {

class Pace {
 public:
  // A batch was made, in so many seconds; and whether storage is read at this time, for which more
  // threads can wait than there are cores.
  void made(double seconds, bool reads_storage);
  // It is not brisk, until enough batches say so once more.
  void forget();
  bool brisk() const { return brisk_.load(std::memory_order_relaxed); }
  // Returns when the pace is not brisk, or at once after close(). Adds the wait to `waited`.
  void wait_while_brisk(TimeSum& waited);
  // It is never brisk again.
  void close();

 private:
  // A consumer that makes a batch gives the one that it asked for back so much later, at most. It
  // ends later than it begins, lest it do both all the time.
  static constexpr double kBegins = 200e-6;
  static constexpr double kEnds = 250e-6;
  static constexpr double kWeight = 32;  // of the mean so far, in batches

  static constexpr double kUnknown = 10 * kEnds;

  void change_to(bool brisk);

  std::atomic<double> mean_{kUnknown};  // seconds; of two batches at once, one may be lost
  std::atomic<bool> brisk_{false};      // written under the mutex
  std::mutex mutex_;                    // guards everything below
  std::condition_variable changed_;
  bool closed_ = false;
};

}  // namespace brimful
