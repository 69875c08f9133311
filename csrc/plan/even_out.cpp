#include "plan/even_out.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "core/random.hpp"
#include "plan/subset_sums.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Divides the units of two bins anew.
class Divider {
 public:
  Divider(std::span<const WorkUnit> units, const Room& whole) : units_(units), whole_(whole) {}

  // True, and both bins changed, if both cost less now than the costlier one did. The costliest
  // units go to the bin that has the least cost so far. Where the capacity leaves no choice to the
  // last and smallest ones, a subset of them is looked for that fills a bin up.
  bool divide(WorkBin& a, WorkBin& b) {
    pool_.clear();
    std::merge(a.units.begin(), a.units.end(), b.units.begin(), b.units.end(),
               std::back_inserter(pool_));
    const std::int64_t limit = std::max(a.cost, b.cost);
    const auto count = static_cast<std::int64_t>(pool_.size());
    for (std::int64_t rest = 0; rest < count && rest <= kMostRest;
         rest = rest == 0 ? 1 : 2 * rest) {
      WorkBin halves[2] = {{.left = whole_}, {.left = whole_}};
      if (!place(count - rest, halves) || !fill(count - rest, halves)) continue;
      if (std::max(halves[0].cost, halves[1].cost) >= limit) continue;
      a = std::move(halves[0]);
      b = std::move(halves[1]);
      return true;
    }
    return false;
  }

  std::int64_t steps() const { return steps_; }

 private:
  static constexpr std::int64_t kMostRest = 64;         // units
  static constexpr std::int64_t kMostTarget = 1 << 17;  // slots; beyond, a subset takes long

  static bool put(const WorkUnit& unit, std::int64_t number, WorkBin& bin) {
    if (!bin.left.holds(unit.room)) return false;
    bin.cost += unit.cost;
    bin.left -= unit.room;
    bin.units.push_back(number);
    return true;
  }

  bool place(std::int64_t count, WorkBin halves[2]) {
    steps_ += count;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t unit = pool_[at(i)];
      const int cheaper = halves[1].cost < halves[0].cost ? 1 : 0;
      if (!put(units_[at(unit)], unit, halves[cheaper]) &&
          !put(units_[at(unit)], unit, halves[1 - cheaper])) {
        return false;
      }
    }
    return true;
  }

  // The units of the pool from `first` on: those that fill the costlier bin best, the others into
  // the cheaper one.
  bool fill(std::int64_t first, WorkBin halves[2]) {
    const auto count = static_cast<std::int64_t>(pool_.size());
    if (first == count) return true;
    WorkBin& costlier = halves[halves[1].cost > halves[0].cost ? 1 : 0];
    WorkBin& cheaper = halves[halves[1].cost > halves[0].cost ? 0 : 1];
    const std::int64_t target = costlier.left.slots;
    if (target > kMostTarget) return false;
    sums_.reset(target);
    offered_.clear();
    for (std::int64_t i = first; i < count; ++i) {
      const std::int64_t slots = units_[at(pool_[at(i)])].room.slots;
      if (slots > target) continue;
      steps_ += 1 + target / 64;
      const Take taken = sums_.add(slots);
      if (taken != Take::kNo) offered_.push_back(i);
      if (taken == Take::kLast) break;
    }
    chosen_.clear();
    sums_.best_subset(chosen_);
    std::size_t next = 0;
    for (std::int64_t i = first; i < count; ++i) {
      const bool choose = next < chosen_.size() && offered_[at(chosen_[next])] == i;
      next += choose ? 1 : 0;
      const std::int64_t unit = pool_[at(i)];
      if (!put(units_[at(unit)], unit, choose ? costlier : cheaper)) return false;
    }
    return true;
  }

  std::span<const WorkUnit> units_;
  Room whole_;
  std::vector<std::int64_t> pool_;  // units of both bins, costliest first
  std::vector<std::int64_t> offered_;
  std::vector<std::int64_t> chosen_;
  SubsetSums sums_;
  std::int64_t steps_ = 0;
};

}  // namespace

void even_out(std::span<const WorkUnit> units, const Room& whole, std::vector<WorkBin>& bins) {
  constexpr std::int64_t kMostSteps = 25'000'000;
  constexpr std::int64_t kStepsOfTry = 64;               // that it takes besides
  constexpr int kCheapest = 16;                          // bins to divide with first
  constexpr int kOthers = 48;                            // and then any ones
  std::set<std::pair<std::int64_t, std::int64_t>> open;  // bins that may be helped, by cost
  double all = 0;                                        // that they cost together
  for (std::size_t b = 0; b < bins.size(); ++b) {
    open.emplace(bins[b].cost, static_cast<std::int64_t>(b));
    all += static_cast<double>(bins[b].cost);
  }
  Divider divider(units, whole);
  std::uint64_t draws = 0;
  std::int64_t tries = 0;
  while (open.size() > 1 && divider.steps() + kStepsOfTry * tries < kMostSteps) {
    const auto [cost, costliest] = *open.rbegin();
    if (static_cast<double>(cost) <= 1.001 * all / static_cast<double>(open.size())) return;
    auto cheapest = open.begin();
    bool divided = false;
    const int most = bins[at(costliest)].units.size() > 1 ? kCheapest + kOthers : 0;
    for (int i = 0; i < most && !divided; ++i, ++tries) {
      const std::int64_t other = i < kCheapest && cheapest != open.end()
                                     ? (cheapest++)->second
                                     : static_cast<std::int64_t>(mix64(++draws) % bins.size());
      const std::int64_t cost_of_other = bins[at(other)].cost;
      if (cost_of_other >= cost) continue;
      divided = divider.divide(bins[at(costliest)], bins[at(other)]);
      if (!divided) continue;
      open.erase({cost, costliest});
      open.erase({cost_of_other, other});
      open.emplace(bins[at(costliest)].cost, costliest);
      open.emplace(bins[at(other)].cost, other);
    }
    if (divided) continue;
    open.erase({cost, costliest});
    all -= static_cast<double>(cost);
  }
}

}  // namespace brimful
