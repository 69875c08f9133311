// A set of steps of a run, as ranges of their numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace brimful {

struct StepRange {
  std::int64_t begin;
  std::int64_t end;  // not in it
  bool operator==(const StepRange&) const = default;
};

class StepSet {
 public:
  StepSet() = default;
  // Ranges in any order, which may overlap. Throws PlanError for one that is none.
  explicit StepSet(std::vector<StepRange> ranges);

  // In order, apart from each other.
  const std::vector<StepRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(std::int64_t step) const { return count(step, step + 1) == 1; }
  // Steps of the set in [begin, end).
  std::int64_t count(std::int64_t begin, std::int64_t end) const;
  // Those from `step` on.
  StepSet from(std::int64_t step) const;

 private:
  std::vector<StepRange> ranges_;
};

}  // namespace brimful
