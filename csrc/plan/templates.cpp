// Filling a template: all items but two are taken from where most is left, the last two are the
// pair that fills the bin best.
#include "plan/templates.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "core/error.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

class Filler {
 public:
  Filler(const Stock& stock, std::span<const std::int64_t> starts, std::int64_t slack)
      : stock_(stock), starts_(starts), slack_(slack), shares_(stock.sizes.size()) {
    filled_.left.assign(stock.counts.begin(), stock.counts.end());
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      shares_[i] = 1.0F / static_cast<float>(stock.counts[i]);
    }
    for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
      double items = 0;
      double tokens = 0;
      for (std::int64_t i = starts[b]; i < starts[b + 1]; ++i) {
        items += static_cast<double>(stock.counts[at(i)]);
        tokens += static_cast<double>(stock.counts[at(i)]) * stock.sizes[at(i)];
      }
      means_.push_back(tokens / items);
    }
    next_.resize(means_.size());
  }

  // The buckets that the next bins take an item from, each as often as it gives one.
  void begin(const PatternView& templates, std::int64_t t) {
    slots_.clear();
    double mean = 0;
    for (std::int64_t e = templates.offsets[at(t)]; e < templates.offsets[at(t + 1)]; ++e) {
      const std::int32_t bucket = templates.items[at(e)];
      slots_.insert(slots_.end(), at(templates.copies[at(e)]), bucket);
      mean += means_[at(bucket)] * templates.copies[at(e)];
    }
    least_ = std::min(stock_.capacity, static_cast<std::int64_t>(mean)) - slack_;
  }

  // Makes up to `most` equal bins and returns how many; 0 when no more can be made.
  std::int64_t fill(std::int64_t most) {
    picked_.clear();
    if (!pick()) {
      for (const std::int64_t i : picked_) ++filled_.left[at(i)];
      return 0;
    }
    std::sort(picked_.begin(), picked_.end());
    // Few at a time: sizes that run out leave others without a partner.
    constexpr std::int64_t kShare = 16;
    std::int64_t more = most - 1;
    each_size([&](std::int64_t i, std::int64_t copies) {
      const std::int64_t bins = (filled_.left[at(i)] + copies) / copies;
      more = std::min(more, std::max<std::int64_t>(0, bins / kShare - 1));
    });
    each_size([&](std::int64_t i, std::int64_t copies) {
      filled_.left[at(i)] -= more * copies;
      filled_.patterns.add(i, copies);
    });
    filled_.patterns.close();
    filled_.times.push_back(1 + more);
    return 1 + more;
  }

  Filled take() { return std::move(filled_); }

 private:
  static constexpr std::int64_t kLook = 256;  // sizes of a bucket looked at for one item

  // How much is left of a size, as a share of what there was.
  float left(std::int64_t i, std::int64_t taken = 0) const {
    return static_cast<float>(filled_.left[at(i)] - taken) * shares_[at(i)];
  }

  void take(std::int64_t i) {
    --filled_.left[at(i)];
    picked_.push_back(i);
  }

  bool pick() {
    std::int64_t free = stock_.capacity;
    const auto alone = static_cast<std::int64_t>(slots_.size()) - 2;
    for (std::int64_t slot = 0; slot < alone; ++slot) {
      const std::int64_t i = fullest(slots_[at(slot)], free);
      if (i < 0) return false;
      take(i);
      free -= stock_.sizes[at(i)];
    }
    if (alone < 0) {
      const std::int64_t i = fullest(slots_[0], free);
      if (i < 0 || stock_.sizes[at(i)] < least_) return false;
      take(i);
      return true;
    }
    return pick_pair(slots_[at(alone)], slots_[at(alone + 1)], free);
  }

  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };

  // The sizes of a bucket; of one with very many sizes another part at each call.
  Range look(std::int64_t bucket) {
    const std::int64_t begin = starts_[at(bucket)];
    const std::int64_t end = starts_[at(bucket + 1)];
    std::int64_t& next = next_[at(bucket)];
    if (begin + next >= end) next = 0;
    const Range part{begin + next, std::min(begin + next + kLook, end)};
    next += kLook;
    return part;
  }

  // Sizes fall: the first from `begin` on that is at most `size`, or `end`.
  std::int64_t first_not_above(std::int64_t begin, std::int64_t end, std::int64_t size) const {
    const auto from = stock_.sizes.begin();
    const auto found = std::partition_point(from + begin, from + end,
                                            [size](std::int32_t other) { return other > size; });
    return found - from;
  }

  // The size that most is left of, of those that fit; -1 when there is none.
  std::int64_t fullest(std::int64_t bucket, std::int64_t free) {
    const Range part = look(bucket);
    std::int64_t best = -1;
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      if (filled_.left[at(i)] == 0 || stock_.sizes[at(i)] > free) continue;
      if (best < 0 || left(i) > left(best)) best = i;
    }
    return best;
  }

  // For each size of one bucket the largest that fits beside it, of the other; of these pairs the
  // one that most is left of.
  bool pick_pair(std::int64_t bucket, std::int64_t other, std::int64_t free) {
    const std::int64_t waste = stock_.capacity - least_;
    const std::int64_t begin = starts_[at(other)];
    const std::int64_t end = starts_[at(other + 1)];
    const Range part = look(bucket);
    // The sizes of the other bucket from here on fit beside the first of the part.
    std::int64_t fits = first_not_above(begin, end, free - stock_.sizes[at(part.begin)]);
    std::int64_t first = -1;
    std::int64_t second = -1;
    float most = 0;
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      const std::int64_t room = free - stock_.sizes[at(i)];  // more for each i
      while (fits > begin && stock_.sizes[at(fits - 1)] <= room) --fits;
      if (filled_.left[at(i)] == 0) continue;
      const std::int64_t last = std::min(end, fits + kLook);
      for (std::int64_t j = fits; j < last && stock_.sizes[at(j)] >= room - waste; ++j) {
        const std::int64_t taken = i == j ? 1 : 0;
        if (filled_.left[at(j)] <= taken) continue;
        const float share = std::min(left(i), left(j, taken));
        if (share > most) {
          most = share;
          first = i;
          second = j;
        }
        break;
      }
    }
    if (first < 0) return false;
    take(first);
    take(second);
    return true;
  }

  // Calls f(size number, copies) for the picked sizes; they are sorted.
  template <class F>
  void each_size(F&& f) const {
    for (std::size_t i = 0, end = 0; i < picked_.size(); i = end) {
      while (end < picked_.size() && picked_[end] == picked_[i]) ++end;
      f(picked_[i], static_cast<std::int64_t>(end - i));
    }
  }

  const Stock& stock_;
  std::span<const std::int64_t> starts_;
  std::int64_t slack_;
  std::vector<float> shares_;        // [sizes] one item as a share of its size's count
  std::vector<double> means_;        // [buckets] tokens
  std::vector<std::int64_t> next_;   // [buckets] where to look next, from the bucket's first size
  std::vector<std::int32_t> slots_;  // the template's buckets
  std::int64_t least_ = 0;           // tokens that a bin of the template must have
  std::vector<std::int64_t> picked_;
  Filled filled_;
};

void check_starts(std::span<const std::int64_t> starts, std::int64_t num_sizes) {
  bool fits = !starts.empty() && starts.front() == 0 && starts.back() == num_sizes;
  for (std::size_t b = 0; fits && b + 1 < starts.size(); ++b) fits = starts[b] < starts[b + 1];
  if (!fits) throw PlanError("the buckets do not divide the sizes");
}

void check_falling(std::span<const std::int32_t> sizes) {
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] >= sizes[i - 1]) {
      throw PlanError("size " + std::to_string(i) + " is not below the one before it");
    }
  }
}

}  // namespace

Filled fill_templates(const Stock& stock, std::span<const std::int64_t> starts,
                      const PatternView& templates, std::int64_t slack, double seconds) {
  check_stock(stock);
  check_falling(stock.sizes);
  check_starts(starts, static_cast<std::int64_t>(stock.sizes.size()));
  check_patterns(templates, static_cast<std::int64_t>(starts.size()) - 1);
  for (const std::int32_t copies : templates.copies) {
    if (copies > stock.capacity) throw PlanError("a template holds more items than a bin");
  }
  Filler filler(stock, starts, slack);
  const auto begin = std::chrono::steady_clock::now();
  const auto late = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >
           seconds;
  };
  // In turns, so that templates which share a bucket get its sizes in like parts.
  constexpr std::int64_t kTurns = 16;
  const auto num_templates = static_cast<std::int64_t>(templates.times.size());
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
    for (std::int64_t t = 0; t < num_templates; ++t) {
      const std::int64_t times = templates.times[at(t)];
      std::int64_t todo = times * (turn + 1) / kTurns - times * turn / kTurns;
      if (todo > 0) filler.begin(templates, t);
      while (todo > 0 && !late()) {
        const std::int64_t made = filler.fill(todo);
        if (made == 0) break;
        todo -= made;
      }
    }
  }
  return filler.take();
}

}  // namespace brimful
