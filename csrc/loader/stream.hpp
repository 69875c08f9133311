// A stream: the batches of one epoch, from a cursor to the epoch's end, made ahead by the
// prefetcher and counted when they are delivered, not before.
//
// With a Courier the batches go to its device, and the caller of next_on() gets them there.
//
// Threads: next() from any thread, one call at a time (a second one is refused); the others at any
// moment.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "batch/layout.hpp"
#include "corpus/token_reader.hpp"
#include "loader/ledger.hpp"
#include "loader/prefetcher.hpp"
#include "loader/transfer.hpp"
#include "plan/dealer.hpp"

namespace brimful {

class Stream {
 public:
  // Steps in `skip` are left out, as the dealer does.
  Stream(std::shared_ptr<const Plan> plan, Layout layout, Geometry geometry, Cursor cursor,
         ReadConfig read, PrefetchConfig prefetch, std::shared_ptr<Ledger> ledger,
         StepSet skip = {}, std::int64_t steps_before = 0,
         std::shared_ptr<Courier> courier = nullptr);

  // Whether batches lie in memory that supply() brings.
  bool supplied() const { return supplied_; }
  // As Prefetcher's.
  std::int64_t blocks_wanted() const { return prefetcher_.blocks_wanted(); }
  // Throws PlanError for a block that is too small.
  void supply(std::span<std::byte> block);

  // Whether next() has an answer at once.
  bool ready() const { return prefetcher_.ready(); }
  // As Prefetcher::next(). The epoch ends with a look at the files, for between two looks some
  // batches may have been filled from one that was written to: ReadError, and no end.
  std::optional<Delivered> next(const std::function<void()>& on_idle = {}) {
    return take(on_idle, std::nullopt);
  }
  void close() {
    closed_ = true;
    prefetcher_.close();
  }
  bool closed() const { return closed_; }  // or about to be

  // As Prefetcher's.
  void refuse_if_forked() const { prefetcher_.refuse_if_forked(); }
  // With a courier, by the consumer, with the device selected. Before each call there is one more
  // destination than before the last one; the first finds as many as batches may be begun.
  // As next(); `compute`, the stream that the batch is used on, waits for it; the caller does not.
  std::optional<Delivered> next_on(device::StreamHandle compute,
                                   const std::function<void()>& on_idle = {});

  const Layout& layout() const;
  std::int64_t epoch() const;  // being delivered
  // Of the next batch to be delivered; the next epoch's beginning once the end was reached.
  Cursor cursor() const;
  // The same, and the ledger's counts up to there: of one moment, also while next() delivers.
  std::pair<Cursor, Counts> standing() const;
  // Steps of the epoch that the cursor given was at the end of; 0 where it was not.
  std::int64_t passed_steps() const;
  // Steps of the epoch, once its end was reached.
  std::optional<std::int64_t> epoch_steps() const;
  PrefetchCounters counters() const { return prefetcher_.counters(); }

 private:
  class Maker;
  // As next(), of a batch with this number at the starvation meter.
  std::optional<Delivered> take(const std::function<void()>& on_idle,
                                std::optional<std::int64_t> measured);

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Maker> maker_;
  std::shared_ptr<Ledger> ledger_;
  std::int64_t run_;                 // of the ledger
  mutable std::mutex cursor_mutex_;  // a delivery is counted under it, too
  Cursor cursor_;
  bool finished_ = false;
  std::atomic<bool> closed_{false};
  bool supplied_;
  std::shared_ptr<Courier> courier_;
  std::shared_ptr<device::Course> course_;
  Prefetcher prefetcher_;  // last: its threads use what stands above
};

}  // namespace brimful
