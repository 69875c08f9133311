// The prefetcher: worker threads that fill slots of the ring ahead of the consumer. A worker leases
// a slot, then claims a ticket (the other order deadlocks), fills, and publishes; the consumer
// takes batches in ticket order, so the stream is the same for any number of threads. With no
// threads, next() does the work itself; at a brisk pace (pace.hpp) it does a part of it.
//
// Threads: next() is called by one consumer at a time (a second one gets Error); close() and
// counters() from any thread; leases may be dropped anywhere. Fork: threads do not survive it, so
// in a forked child next() throws Error at once, counters() stand still, and close() and the
// destructor do nothing and never wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "batch/layout.hpp"
#include "loader/ring.hpp"
#include "loader/sequencer.hpp"
#include "loader/telemetry.hpp"
#include "plan/dealer.hpp"

namespace brimful {

struct Filled {
  BatchMeta meta;
  std::shared_ptr<Sent> sent = nullptr;  // of a batch that is on its way to a device
};

// Makes the batches. claim() and at_hand() are called by one thread at a time, claim() in ticket
// order; the others by many.
class Producer {
 public:
  virtual ~Producer() = default;
  virtual std::size_t slot_bytes() const = 0;
  // Where slots lie; null: in memory of the ring's own.
  virtual std::shared_ptr<SlotMemory> slot_memory() const { return nullptr; }
  // Whether fill() sends batches to a device, so that consumers never hold slots.
  virtual bool sends() const { return false; }
  // A worker begins.
  virtual void enter_thread() const {}
  virtual std::optional<BatchSpec> claim() = 0;
  // Whether claim() takes little time, so that a consumer may call it.
  virtual bool at_hand() const { return false; }
  // Whether fill() waits for storage, lately.
  virtual bool reads_storage() const { return false; }
  // Does beforehand what claims to come would have to do. Called by workers between batches.
  virtual void prepare() const {}
  virtual Filled fill(const BatchSpec& spec, const Lease& slot) const = 0;
  // Lets go of slots that were sent and have been read since; where it waits, of all of them.
  virtual void settle(bool waits) const { static_cast<void>(waits); }
  // The clock that waits for slots are told by; 0 where nobody asks.
  virtual double now() const { return 0; }
};

struct PrefetchConfig {
  int num_workers = 2;
  std::int64_t depth = 4;                                // batches ready ahead
  std::optional<std::int64_t> max_slots = std::nullopt;  // null: as many as it takes
  std::chrono::nanoseconds timeout{0};                   // of next(), which needs workers; 0: none
  Ring::Memory memory = Ring::Memory::kOwn;
};

// Seconds, and counts, since construction.
struct PrefetchCounters {
  std::int64_t batches = 0;
  double stall_seconds = 0;        // next() blocked or (no workers) at work; not the first batch
  double first_batch_seconds = 0;  // from construction until the first batch was handed out
  std::vector<ThreadSeconds> threads;  // of the workers, and then of the consumer
  std::int64_t queue_depths = 0;       // batches ready when next() was called, summed over batches
  std::int64_t slots = 0;              // in the ring
  std::int64_t slots_grown = 0;        // added because the consumer kept all of them
};

class Prefetcher {
 public:
  // Throws PlanError for a configuration out of range, Error when a thread cannot be started.
  Prefetcher(std::shared_ptr<Producer> producer, PrefetchConfig config);
  ~Prefetcher();  // close()
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // While next() is blocked it calls `on_idle`, if there is one, about this often.
  static constexpr std::chrono::milliseconds kIdleSlice{50};

  // As the ring's, for Ring::Memory::kSupplied; before every next(), by the consumer.
  std::int64_t blocks_wanted() const;
  void supply(std::byte* block);

  // Whether next() would return, or throw, at once.
  bool ready() const;

  // The next batch; nothing at the end, as often as asked. Rethrows what a worker threw, in its
  // ticket's place, and the same again at each later call. Throws RingExhausted and LoaderTimeout,
  // after which the stream goes on where it was, and Error in a forked child or after close(),
  // also when close() comes from elsewhere while next() waits.
  //
  // `on_idle` runs in the calling thread with no lock held, so a binding can look for signals
  // there. It may throw: that leaves next() and the stream goes on where it was. Without workers
  // next() never waits, so it is not called. Where there is a timeout, next() makes no batch.
  std::optional<Delivered> next(const std::function<void()>& on_idle = {});
  // Throws as next() does in a forked child.
  void refuse_if_forked() const;

  // Stops and joins the threads; a fill under way ends first. Leases handed out stay valid. A
  // second call does nothing.
  void close();

  PrefetchCounters counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brimful
