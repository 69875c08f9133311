#include "device/race_detector.hpp"

#include <algorithm>
#include <utility>

namespace brimful::device {
namespace {

bool overlap(const Range& a, const Range& b) { return a.begin < b.end() && b.begin < a.end(); }

Range between(const std::byte* begin, const std::byte* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

void VectorClock::tick(std::size_t actor) {
  if (ticks_.size() <= actor) ticks_.resize(actor + 1);
  ++ticks_[actor];
}

void VectorClock::join(const VectorClock& other) {
  if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
  for (std::size_t i = 0; i < other.ticks_.size(); ++i) {
    ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }
}

std::size_t RaceDetector::add_actor(std::string name) {
  names_.push_back(std::move(name));
  clocks_.emplace_back();
  return names_.size() - 1;
}

std::string RaceDetector::access(std::size_t actor, Range range, bool writes,
                                 const std::string& what) {
  clocks_[actor].tick(actor);
  std::string wrong;
  std::vector<Access> kept;
  kept.reserve(accesses_.size() + 1);
  for (Access& earlier : accesses_) {
    const bool meets = overlap(earlier.range, range);
    const bool ordered = clocks_[actor].of(earlier.actor) >= earlier.tick;
    if (meets && (writes || earlier.writes) && !ordered && wrong.empty()) {
      wrong = what + " (" + names_[actor] + ") " + (writes ? "writes" : "reads") + " memory that " +
              earlier.what + " (" + names_[earlier.actor] + ") " +
              (earlier.writes ? "writes" : "reads") + ", and nothing orders the two";
    }
    // Whoever knows of this access knows of the earlier one too, unless they are reads side by
    // side.
    const bool replaced = meets && ordered && (writes || earlier.writes == writes);
    if (!replaced) {
      kept.push_back(std::move(earlier));
      continue;
    }
    const Range before = earlier.range;
    if (before.begin < range.begin) {
      kept.push_back(earlier);
      kept.back().range = between(before.begin, range.begin);
    }
    if (range.end() < before.end()) {
      kept.push_back(std::move(earlier));
      kept.back().range = between(range.end(), before.end());
    }
  }
  kept.push_back({range, writes, actor, clocks_[actor].of(actor), what});
  accesses_ = std::move(kept);
  return wrong;
}

}  // namespace brimful::device
