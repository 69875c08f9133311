// Starvation: seconds that the compute stream stood still because a batch was not there. It is
// measured by events on the streams, read long after they were reached, so that nothing waits:
//
//   A  on the compute stream when next() is entered: what was queued before is done
//   X  on the copy stream before a batch is copied
//   D  on the copy stream once it is copied and expanded
//   B  on the compute stream when next() is left, behind its wait for D
//
// Between A and B the stream had nothing to do, so it starved for that long. With X and D the time
// splits into load (the batch was not made yet), copy, and handoff (it was on the device, and the
// host late). Of load, ring is the part in which the thread that made the batch waited for a slot,
// known on the host's clock. Headroom is how long the device still had work when next() was
// entered: it falls before starvation shows.
//
// This is the stall of one stream. Work of the user's on streams that are not joined to it makes A
// early, and what other streams did meanwhile is not seen.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "device/api.hpp"
#include "device/event_pool.hpp"

namespace brimful::device {

// Seconds on the device's clock. They do not count the first batch of a course, nor what comes
// before it.
struct StarvationCounts {
  std::int64_t batches = 0;
  double elapsed = 0;  // from the first B to the last
  double starved = 0;  // the sum of the next four
  double load = 0;     // without ring
  double ring = 0;
  double copy = 0;
  double handoff = 0;
  std::optional<double> headroom;  // 1st percentile of the last kHeadrooms batches
};

// What one batch starved the stream for, in seconds, and the headroom it had.
struct BatchStarvation {
  std::int64_t number = 0;  // of its entry
  double load = 0;
  double ring = 0;
  double copy = 0;
  double handoff = 0;
  double headroom = 0;
};

// A batch on its way to the device.
struct CopyEvents {
  EventHandle begun = nullptr;  // X
  EventHandle done = nullptr;   // D
  double slot_asked = 0;        // when its thread began to wait for a slot, and got one; host clock
  double slot_granted = 0;
};

// next(), entered and not yet left.
struct Entry {
  EventHandle event = nullptr;  // A; null: nothing is measured
  double host = 0;
  std::int64_t number = 0;  // of the meter's
};

// The batches of one iterator, one after the other. Device time is counted from the first B. Every
// B is timed from the one before it: an elapsed time is a float, which over hours is too coarse.
struct Course {
  explicit Course(EventPool& pool) : events(pool) {}
  ~Course() {
    if (last != nullptr) events.give(last);
  }
  Course(const Course&) = delete;
  Course& operator=(const Course&) = delete;

  EventPool& events;
  EventHandle last = nullptr;  // B of the batch before
  double time = 0;             // of it
  // Device time less host time, of the last B's. The smallest is nearest to the offset between the
  // clocks, for B comes after its call and, where the stream was idle, at once. Only the last ones:
  // the clocks drift.
  std::deque<double> offsets;
};

class StarvationMeter {
 public:
  static constexpr std::size_t kHeadrooms = 1024;
  static constexpr std::size_t kMostBatches = 10'000;  // kept one by one
  static constexpr std::size_t kOffsets = 64;
  // What two events cost where the stream is busy, which is no starvation, is at most this.
  static constexpr double kMostOverhead = 10e-6;

  explicit StarvationMeter(DeviceApi& api) : api_(api), events_(api, EventUse::kTime) {}

  // It must not outlive the meter.
  std::shared_ptr<Course> begin_course() { return std::make_shared<Course>(events_); }

  // In the thread that copies.
  CopyEvents begin_copy(StreamHandle copy_stream);
  void end_copy(CopyEvents& copy, StreamHandle copy_stream);
  // The events of a copy that nobody waits for any more.
  void forget(const CopyEvents& copy);

  // In the consumer's thread. leave() makes the compute stream wait for the copy, whose events are
  // the meter's from then on. While the stream is captured nothing is recorded, and the host waits
  // instead: a graph cannot wait for what is outside of it.
  Entry enter(StreamHandle compute_stream);
  void leave(const Entry& entry, StreamHandle compute_stream, const CopyEvents& copy,
             const std::shared_ptr<Course>& course);
  void abandon(const Entry& entry);  // there was no batch
  // Reads the batches that are through. Never waits.
  void harvest();

  StarvationCounts counts() const;
  // Of the last batches that were measured, those with entries from this number on, in order.
  std::vector<BatchStarvation> batches(std::int64_t since) const;
  // Destroys the events, in a thread that has selected their device; batches that were not
  // harvested are not counted.
  void clear();

 private:
  struct Measured {
    Entry entry;
    CopyEvents copy;
    EventHandle left;  // B
    double host_left;
    std::shared_ptr<Course> course;
  };
  void add(const Measured& batch);
  void keep(const BatchStarvation& batch);

  DeviceApi& api_;
  EventPool events_;
  mutable std::mutex mutex_;  // guards everything below
  std::int64_t entries_ = 0;
  std::deque<Measured> pending_;
  std::optional<double> overhead_;
  std::deque<double> headrooms_;
  std::deque<BatchStarvation> batches_;
  StarvationCounts counts_;
};

}  // namespace brimful::device
