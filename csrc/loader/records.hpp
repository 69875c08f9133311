// Records: what the last batches of a loader were, how long each took and how long it was waited
// for. Any thread may add or read; the memory is that of the last kMost batches, no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "loader/telemetry.hpp"

namespace brimful {

struct BatchRecord {
  std::int64_t epoch = 0;
  std::int64_t step = 0;         // in its epoch
  std::int64_t micro_batch = 0;  // in its step
  std::int64_t slots = 0;        // places in the batch
  std::int64_t tokens = 0;
  std::int64_t effective_tokens = 0;
  std::int64_t attention_work = 0;
  BatchTimes times;
};

class Records {
 public:
  static constexpr std::size_t kMost = 1024;

  void add(const BatchRecord& record) {
    const std::scoped_lock lock(mutex_);
    if (records_.size() < kMost) {
      records_.push_back(record);
    } else {
      records_[oldest_] = record;
      oldest_ = (oldest_ + 1) % kMost;
    }
  }

  // In order of delivery.
  std::vector<BatchRecord> list() const {
    const std::scoped_lock lock(mutex_);
    std::vector<BatchRecord> all(records_.begin() + static_cast<std::ptrdiff_t>(oldest_),
                                 records_.end());
    all.insert(all.end(), records_.begin(),
               records_.begin() + static_cast<std::ptrdiff_t>(oldest_));
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<BatchRecord> records_;
  std::size_t oldest_ = 0;  // once there are kMost
};

}  // namespace brimful
