#include "device/starvation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace brimful::device {

CopyEvents StarvationMeter::begin_copy(StreamHandle copy_stream) {
  CopyEvents copy{.begun = events_.take(), .done = events_.take()};
  api_.record(copy.begun, copy_stream);
  return copy;
}

void StarvationMeter::end_copy(CopyEvents& copy, StreamHandle copy_stream) {
  api_.record(copy.done, copy_stream);
}

void StarvationMeter::forget(const CopyEvents& copy) {
  events_.give(copy.begun);
  events_.give(copy.done);
}

Entry StarvationMeter::enter(StreamHandle compute_stream) {
  if (api_.is_capturing(compute_stream)) return {};
  Entry entry{.event = events_.take(), .host = api_.now()};
  api_.record(entry.event, compute_stream);
  const std::scoped_lock lock(mutex_);
  entry.number = entries_++;
  return entry;
}

void StarvationMeter::abandon(const Entry& entry) {
  if (entry.event != nullptr) events_.give(entry.event);
}

void StarvationMeter::leave(const Entry& entry, StreamHandle compute_stream, const CopyEvents& copy,
                            const std::shared_ptr<Course>& course) {
  if (api_.is_capturing(compute_stream)) {
    api_.sleep_until(copy.done);
    abandon(entry);
    forget(copy);
    return;
  }
  api_.wait(compute_stream, copy.done);
  if (entry.event == nullptr) {  // the capture ended meanwhile
    forget(copy);
    return;
  }
  EventHandle left = events_.take();
  api_.record(left, compute_stream);
  {
    const std::scoped_lock lock(mutex_);
    pending_.push_back({entry, copy, left, api_.now(), course});
  }
  harvest();
}

void StarvationMeter::harvest() {
  const std::scoped_lock lock(mutex_);
  while (!pending_.empty() && api_.reached(pending_.front().left)) {
    const Measured batch = std::move(pending_.front());
    pending_.pop_front();
    add(batch);
    abandon(batch.entry);
    forget(batch.copy);
  }
}

void StarvationMeter::clear() {
  const std::scoped_lock lock(mutex_);
  for (const Measured& batch : pending_) {
    abandon(batch.entry);
    forget(batch.copy);
    events_.give(batch.left);
  }
  pending_.clear();
  events_.clear();
}

void StarvationMeter::add(const Measured& batch) {
  Course& course = *batch.course;
  const bool first = course.last == nullptr;
  const double since = first ? 0 : api_.seconds_between(course.last, batch.left);
  if (!first) events_.give(course.last);
  course.last = batch.left;
  course.time += since;
  course.offsets.push_back(course.time - batch.host_left);
  if (course.offsets.size() > kOffsets) course.offsets.pop_front();
  if (first) return;

  const double x3 = course.time;
  const double x0 = x3 - api_.seconds_between(batch.entry.event, batch.left);
  const double copied = x3 - api_.seconds_between(batch.copy.done, batch.left);
  const double x1 = std::clamp(x3 - api_.seconds_between(batch.copy.begun, batch.left), x0, x3);
  const double x2 = std::clamp(copied, x1, x3);
  if (copied <= x0)
    overhead_ = std::min({overhead_.value_or(kMostOverhead), kMostOverhead, x3 - x0});

  const double offset = *std::min_element(course.offsets.begin(), course.offsets.end());
  const double waited = std::clamp(batch.copy.slot_granted + offset, x0, x1) -
                        std::clamp(batch.copy.slot_asked + offset, x0, x1);
  double excess = overhead_.value_or(0);
  const auto less_excess = [&excess](double part) {
    const double taken = std::min(excess, part);
    excess -= taken;
    return part - taken;
  };
  const double handoff = less_excess(x3 - x2);
  const double copy = less_excess(x2 - x1);
  const double load = less_excess(x1 - x0 - waited);
  const double ring = less_excess(waited);
  counts_.batches += 1;
  counts_.elapsed += since;
  counts_.load += load;
  counts_.ring += ring;
  counts_.copy += copy;
  counts_.handoff += handoff;
  counts_.starved += load + ring + copy + handoff;
  keep({.number = batch.entry.number,
        .load = load,
        .ring = ring,
        .copy = copy,
        .handoff = handoff,
        .headroom = x0 - (batch.entry.host + offset)});
}

void StarvationMeter::keep(const BatchStarvation& batch) {
  headrooms_.push_back(batch.headroom);
  if (headrooms_.size() > kHeadrooms) headrooms_.pop_front();
  batches_.push_back(batch);
  if (batches_.size() > kMostBatches) batches_.pop_front();
}

std::vector<BatchStarvation> StarvationMeter::batches(std::int64_t since) const {
  const std::scoped_lock lock(mutex_);
  std::vector<BatchStarvation> found;
  std::copy_if(batches_.begin(), batches_.end(), std::back_inserter(found),
               [since](const BatchStarvation& batch) { return batch.number >= since; });
  return found;
}

StarvationCounts StarvationMeter::counts() const {
  const std::scoped_lock lock(mutex_);
  StarvationCounts counts = counts_;
  if (!headrooms_.empty()) {
    std::vector<double> sorted(headrooms_.begin(), headrooms_.end());
    const auto percentile = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 100);
    std::nth_element(sorted.begin(), percentile, sorted.end());
    counts.headroom = *percentile;
  }
  return counts;
}

}  // namespace brimful::device
