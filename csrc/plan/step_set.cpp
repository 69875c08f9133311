#include "plan/step_set.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace brimful {

StepSet::StepSet(std::vector<StepRange> ranges) {
  for (const StepRange& range : ranges) {
    if (range.begin < 0 || range.end < range.begin) {
      throw PlanError("skip: steps " + std::to_string(range.begin) + " up to " +
                      std::to_string(range.end) + " are no range; steps are numbered from 0 up");
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const StepRange& a, const StepRange& b) { return a.begin < b.begin; });
  for (const StepRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!ranges_.empty() && range.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      ranges_.push_back(range);
    }
  }
}

std::int64_t StepSet::count(std::int64_t begin, std::int64_t end) const {
  auto range = std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                                [](std::int64_t step, const StepRange& r) { return step < r.end; });
  std::int64_t steps = 0;
  for (; range != ranges_.end() && range->begin < end; ++range) {
    steps += std::min(range->end, end) - std::max(range->begin, begin);
  }
  return steps;
}

StepSet StepSet::from(std::int64_t step) const {
  std::vector<StepRange> later;
  for (const StepRange& range : ranges_) {
    if (range.end > step) later.push_back({std::max(range.begin, step), range.end});
  }
  return StepSet(std::move(later));
}

}  // namespace brimful
