// Records: what the last batches of a loader were, how long each took and how long it was waited
// for. Any thread may add or read; the memory is that of the last kMost batches, no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "loader/telemetry.hpp"

namespace brimful {

struct BatchRecord {
  std::int64_t number = 0;  // of all that the loader delivered, from 0
  std::int64_t epoch = 0;
  std::int64_t step = 0;         // in its epoch
  std::int64_t micro_batch = 0;  // in its step
  std::int64_t slots = 0;        // places in the batch
  std::int64_t tokens = 0;
  std::int64_t effective_tokens = 0;
  std::int64_t attention_work = 0;
  std::optional<std::int64_t> measured;  // its number with the starvation meter
  BatchTimes times;
};

class Records {
 public:
  static constexpr std::size_t kMost = 10'000;

  void add(BatchRecord record) {
    const std::scoped_lock lock(mutex_);
    record.number = added_++;
    if (records_.size() < kMost) {
      records_.push_back(record);
    } else {
      records_[oldest_] = record;
      oldest_ = (oldest_ + 1) % kMost;
    }
  }

  // So many were added; the next one gets this number.
  std::int64_t added() const {
    const std::scoped_lock lock(mutex_);
    return added_;
  }

  // Those from number `since` on that are kept, in order of delivery.
  std::vector<BatchRecord> list(std::int64_t since) const {
    const std::scoped_lock lock(mutex_);
    const auto kept = static_cast<std::int64_t>(records_.size());
    const std::int64_t first = std::clamp(since, added_ - kept, added_);
    std::vector<BatchRecord> found;
    found.reserve(static_cast<std::size_t>(added_ - first));
    for (std::int64_t n = first; n < added_; ++n) {
      const auto behind_oldest = static_cast<std::size_t>(n - (added_ - kept));
      found.push_back(records_[(oldest_ + behind_oldest) % records_.size()]);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<BatchRecord> records_;
  std::size_t oldest_ = 0;  // once there are kMost
  std::int64_t added_ = 0;
};

}  // namespace brimful
