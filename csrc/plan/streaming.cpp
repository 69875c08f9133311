// The packer that takes units one by one.
#include "plan/streaming.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "plan/open_bins.hpp"
#include "plan/subset_sums.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

class StreamingPacker {
 public:
  StreamingPacker(const Units& units, std::int64_t buffer, Packing& packing)
      : buffer_(at(buffer)),
        empty_bin_{units.capacity(), units.max_segments(), units.resource_capacity()},
        many_sided_(units.many_sided()),
        packing_(packing) {
    packing_.bin_offsets.push_back(0);
  }

  void push(const Unit& unit) {
    if (waiting_.capacity() == waiting_.size()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(oldest_));
      oldest_ = 0;
      waiting_.reserve(2 * waiting_.size() + 64);
    }
    waiting_.push_back({unit.document, unit.start, arrived_++, unit.resource, unit.size,
                        static_cast<std::int32_t>(unit.pieces)});
    slots_ += unit.size;
    while (full()) step();
  }

  void finish() {
    // With nothing to come, largest first wastes less; what waits may go in any order.
    std::stable_sort(waiting_.begin() + static_cast<std::ptrdiff_t>(oldest_), waiting_.end(),
                     [](const Waiting& a, const Waiting& b) { return a.size > b.size; });
    while (count() > 0) step();
    if (!bin_.empty()) close();
  }

 private:
  struct Waiting {
    std::int64_t document;
    std::int64_t start;
    std::int64_t arrival;
    std::int64_t resource;
    std::int32_t size;
    std::int32_t pieces;  // no more than there are slots

    Room room() const { return {size, pieces, resource}; }
  };

  std::size_t count() const { return waiting_.size() - oldest_; }
  const Waiting& oldest() const { return waiting_[oldest_]; }

  // No unit may be added before one is taken.
  bool full() const {
    return count() >= buffer_ || (count() > 0 && at(arrived_ - oldest().arrival) >= 3 * buffer_);
  }

  // Takes units from the buffer, or closes the bin for want of one that fits.
  void step() {
    if (bin_.empty()) {
      free_ = empty_bin_;
      take_oldest();
    } else if (free_.holds(oldest().room()) && has_room_for_many()) {
      take_oldest();
    } else if (!(many_sided_ ? take_largest() : fill())) {
      close();
      return;
    }
    if (free_.slots == 0 || free_.pieces == 0) close();
  }

  // Far from full any unit will do, and the oldest is best; so sums stay small.
  bool has_room_for_many() const {
    return free_.slots * static_cast<std::int64_t>(count()) > kFew * slots_;
  }

  void take(const Waiting& unit) {
    bin_.push_back(unit);
    free_ -= unit.room();
    slots_ -= unit.size;
  }

  void take_oldest() {
    take(waiting_[oldest_]);
    ++oldest_;
  }

  bool fill() {
    // Large sums are counted in steps. Sizes are rounded up, so that what seems to fit does; one
    // that would be rounded over the target fits alone.
    const std::int64_t step = free_.slots / kMostSums + 1;
    const std::int64_t target = free_.slots / step;
    const auto rounded = [&](std::int64_t size) {
      return step == 1 ? size : std::min(target, (size + step - 1) / step);
    };
    if (pieces_are_scarce() && choose_largest()) {
      take_chosen();
      return true;
    }
    sums_.reset(target);
    list_candidates([&](std::int64_t size) { return sums_.add(rounded(size)); });
    if (candidates_.empty()) return false;
    chosen_.clear();
    sums_.best_subset(chosen_);
    if (static_cast<std::int64_t>(chosen_.size()) > free_.pieces && !choose_largest()) {
      counted_.reset(target, free_.pieces);
      list_candidates([&](std::int64_t size) { return counted_.add(rounded(size)); });
      chosen_.clear();
      counted_.best_subset(chosen_);
    }
    take_chosen();
    return true;
  }

  // As many units as there may be, of the usual size, leave slots free.
  bool pieces_are_scarce() const {
    const auto waiting = static_cast<std::int64_t>(count());
    return free_.pieces < waiting && free_.pieces * slots_ < free_.slots * waiting;
  }

  // The largest units are the best choice, as many as there may be, if they fit together.
  bool choose_largest() {
    list_candidates([](std::int64_t) { return Take::kYes; });
    const auto size_of = [this](std::int64_t item) { return waiting_[candidates_[at(item)]].size; };
    chosen_.resize(candidates_.size());
    std::iota(chosen_.begin(), chosen_.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(chosen_.size()) > free_.pieces) {
      const auto end = chosen_.begin() + free_.pieces;
      std::nth_element(chosen_.begin(), end, chosen_.end(), [&](std::int64_t a, std::int64_t b) {
        return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a < b;
      });
      chosen_.erase(end, chosen_.end());
      std::sort(chosen_.begin(), chosen_.end());
    }
    std::int64_t slots = 0;
    for (const std::int64_t item : chosen_) slots += size_of(item);
    return !chosen_.empty() && slots <= free_.slots;
  }

  // The units that fit and that take(size) does not refuse, oldest first.
  template <class F>
  void list_candidates(F&& take) {
    candidates_.clear();
    for (std::size_t i = oldest_; i < waiting_.size(); ++i) {
      if (waiting_[i].size > free_.slots) continue;
      const Take answer = take(waiting_[i].size);
      if (answer != Take::kNo) candidates_.push_back(i);
      if (answer == Take::kLast) return;
    }
  }

  // Sums of several sides at once would be too many: of the units that fit, the largest one.
  bool take_largest() {
    candidates_.clear();
    for (std::size_t i = oldest_; i < waiting_.size(); ++i) {
      if (!free_.holds(waiting_[i].room())) continue;
      if (!candidates_.empty() && waiting_[i].size <= waiting_[candidates_[0]].size) continue;
      candidates_.assign(1, i);
    }
    if (candidates_.empty()) return false;
    chosen_.assign(1, 0);
    take_chosen();
    return true;
  }

  void take_chosen() {
    for (const std::int64_t item : chosen_) take(waiting_[candidates_[at(item)]]);
    // Older units move into the gaps: they are few, as sums are made of the oldest first.
    std::size_t end = candidates_[at(chosen_.back())] + 1;
    std::size_t next = chosen_.size();
    for (std::size_t i = end; i-- > oldest_;) {
      if (next > 0 && i == candidates_[at(chosen_[next - 1])]) {
        --next;
      } else {
        waiting_[--end] = waiting_[i];
      }
    }
    oldest_ = end;
  }

  void close() {
    const auto older = [](const Waiting& a, const Waiting& b) { return a.arrival < b.arrival; };
    if (!std::is_sorted(bin_.begin(), bin_.end(), older)) {
      std::sort(bin_.begin(), bin_.end(), older);
    }
    for (const Waiting& unit : bin_) {
      packing_.documents.push_back(unit.document);
      packing_.starts.push_back(unit.start);
      packing_.lengths.push_back(unit.size);
    }
    packing_.bin_offsets.push_back(static_cast<std::int64_t>(packing_.documents.size()));
    bin_.clear();
  }

  static constexpr std::int64_t kFew = 8;  // units that the last step of a fill chooses, about
  static constexpr std::int64_t kMostSums = 1 << 16;

  std::size_t buffer_;
  Room empty_bin_;
  bool many_sided_;
  Packing& packing_;
  Room free_;  // in the open bin
  std::int64_t arrived_ = 0;
  std::int64_t slots_ = 0;        // waiting
  std::vector<Waiting> waiting_;  // from oldest_ on, in arrival order
  std::size_t oldest_ = 0;
  std::vector<Waiting> bin_;  // the open one; empty: none is open
  SubsetSums sums_;
  CountedSums counted_;
  std::vector<std::size_t> candidates_;  // in waiting_, the items of the sums
  std::vector<std::int64_t> chosen_;     // items
};

}  // namespace

void place_streaming(const Units& units, std::int64_t buffer, Packing& packing) {
  StreamingPacker packer(units, buffer, packing);
  units.each([&](const Unit& unit) { packer.push(unit); });
  packer.finish();
}

}  // namespace brimful
