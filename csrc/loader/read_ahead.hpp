// Read-ahead: deals batches earlier than they are filled, and tells the system which bytes of files
// they will read, so that storage works while other batches are filled. Only while storage is read
// at all: as long as everything comes from the page cache, batches are dealt when they are claimed.
// Whether storage is read shows in the counters of the threads that ask and that fill.
//
// Threads: next() and at_hand() by one at a time, as Dealer's; the others by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <vector>

#include "plan/dealer.hpp"

namespace brimful {

class ReadAhead {
 public:
  // Bytes of coming batches that are asked for, and how many are asked for at once, so that
  // neighbours in a file are one range.
  static constexpr std::int64_t kAheadBytes = 32 << 20;
  static constexpr std::int64_t kChunkBytes = 1 << 20;
  static constexpr std::size_t kMaxBatches = 4096;

  explicit ReadAhead(Dealer& dealer) : dealer_(dealer) {}

  // As Dealer::next(). What that throws comes in its batch's place.
  std::optional<BatchSpec> next();
  // Whether that takes little time.
  bool at_hand() const { return !reads_storage_ && dealt_.empty() && dealer_.at_hand(); }
  // What the calling thread has read from storage so far, at times.
  using Reads = std::optional<long>;
  // Call before a batch is filled, and filled() with what this gave when it is, in one thread.
  static Reads filling();
  void filled(Reads before);
  // Whether storage is read, lately.
  bool reads_storage() const { return reads_storage_; }

 private:
  struct Range {
    SharedFile* file;
    std::int64_t begin;
    std::int64_t end;
  };
  struct Dealt {
    BatchSpec spec;
    std::int64_t bytes;
  };
  void deal_ahead();
  std::int64_t add_ranges(const BatchSpec& spec, std::vector<Range>& ranges) const;
  // Returns whether storage had to be read.
  static bool ask_for(std::vector<Range> ranges);

  Dealer& dealer_;
  std::deque<Dealt> dealt_;
  std::int64_t dealt_bytes_ = 0;
  bool ended_ = false;
  std::exception_ptr error_;
  bool begun_ = false;
  int from_cache_ = 0;  // chunks in a row for which storage was not read
  std::atomic<bool> reads_storage_{false};
};

}  // namespace brimful
