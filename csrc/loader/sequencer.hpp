// The sequencer: filled batches come in as the workers finish them and go out in the order of their
// tickets, 0, 1, 2, ... The end of the stream and errors have their place in that order too.
//
// Threads: publish(), end(), close(), ready() and settled() from any thread; the others from one
// consumer at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "batch/layout.hpp"
#include "loader/ring.hpp"
#include "loader/telemetry.hpp"
#include "plan/dealer.hpp"

namespace brimful {

struct Sent;  // transfer.hpp

// A batch on its way to the consumer.
struct Delivered {
  Lease slot;
  BatchSpec spec;
  BatchMeta meta;
  BatchTimes times;
  std::shared_ptr<Sent> sent = nullptr;  // of a batch that goes to a device; else it is in its slot
};

class Sequencer {
 public:
  // At most `depth` tickets are claimed and not yet taken, and each has a place of its own.
  explicit Sequencer(std::int64_t depth) : places_(static_cast<std::size_t>(depth)) {}

  void publish(std::int64_t ticket, Delivered batch);
  // No batch comes out from this ticket on; `error` does, or nothing if it is null. The smallest
  // ticket counts: those before it are claimed already, and come out.
  void end(std::int64_t ticket, std::exception_ptr error);
  // Lets go of every batch inside; from now on take() throws Error, or is at the end as before.
  void close();

  // Batches inside, out of turn or not.
  std::int64_t ready() const { return ready_.load(std::memory_order_relaxed); }
  // Whether take() may be called. Takes no lock.
  bool settled() const { return settled_.load(std::memory_order_acquire); }
  // Waits for that, at most `slice`, and says whether it is so.
  bool wait_for(std::chrono::nanoseconds slice);
  // The next batch; nothing at the end; or throws the error in its place, every time.
  std::optional<Delivered> take();

 private:
  std::optional<Delivered>& place(std::int64_t ticket) {
    return places_[static_cast<std::size_t>(ticket) % places_.size()];
  }
  void settle();  // after every change of what follows

  std::atomic<bool> settled_{false};
  std::atomic<std::int64_t> ready_{0};
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::vector<std::optional<Delivered>> places_;
  std::int64_t next_ = 0;
  std::int64_t end_ = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace brimful
