// Runs of bins: neighbouring bins with the same content are filled and moved as one. A stretch of
// equal units goes into a whole run in one step, so placing costs as much as there are different
// (content, size) pairs, not as many steps as documents; bins and units come out exactly as if they
// had been placed one by one. Bins and units are counted in 31 bits, as a PieceSequence's are: the
// records stay small, and with them what placing costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/packer.hpp"
#include "plan/pieces.hpp"

namespace brimful {

// Bins first_bin .. first_bin + num_bins of equal content, and so of equal free space.
struct Run {
  std::int32_t first_bin = 0;
  std::int32_t num_bins = 0;
  std::int32_t placement = -1;  // the last one of these bins; it leads to the earlier ones
  std::int32_t next = -1;       // the run of the bins behind these
  std::int32_t pieces = 0;      // in each bin
  std::int32_t free = 0;        // slots, in each bin
};

// An Index holds the runs that may take more units and decides which one takes the next:
//   std::int64_t take(std::int32_t size)  removes and returns that run; -1 when none has room
//   void insert(std::int64_t run, std::int64_t first_bin, std::int32_t free)
// As long as a bin has room for another unit of the same size the rule must choose it again, and
// then the next bin of its run: so it is for best fit and for first fit.
class BinRuns {
 public:
  // Runs with less room than `smallest`, the smallest unit to come, are closed, and so are those of
  // bins with `max_segments` units.
  BinRuns(std::int64_t capacity, std::int32_t smallest, std::int64_t max_segments)
      : capacity_(static_cast<std::int32_t>(capacity)),
        smallest_(smallest),
        max_segments_(max_segments) {}

  // Places `group`, whose first unit is number `first_piece` of the sequence.
  template <class Index>
  void place(SizeGroup group, std::int64_t first_piece, Index& index) {
    while (group.count > 0) {
      std::int64_t run = index.take(group.size);
      if (run < 0) {
        const std::int64_t per_bin = std::min<std::int64_t>(capacity_ / group.size, max_segments_);
        run = open((group.count - 1) / per_bin + 1);
      }
      const std::int64_t placed = fill(run, group, first_piece, index);
      group.count -= placed;
      first_piece += placed;
    }
  }

  // Writes bins and units, with sizes for lengths, and gives the sequence's memory to the packing.
  void write(PieceSequence&& sequence, Packing& packing) const;

 private:
  // `per_bin` units of one size in each bin from `first_bin` on, taken from the sequence in
  // order. A run that was split shares the placements made before.
  struct Placement {
    std::int32_t earlier;  // placement, or -1
    std::int32_t first_bin;
    std::int32_t first_piece;
    std::int32_t per_bin;
    std::int32_t size;
  };

  // Fills bins of the run one after the other; returns how many units it took.
  template <class Index>
  std::int64_t fill(std::int64_t run, SizeGroup group, std::int64_t first_piece, Index& index) {
    const std::int64_t per_bin =
        std::min<std::int64_t>(runs_[run].free / group.size, max_segments_ - runs_[run].pieces);
    const std::int64_t full = std::min<std::int64_t>(runs_[run].num_bins, group.count / per_bin);
    std::int64_t placed = full * per_bin;
    if (full < runs_[run].num_bins) {
      const std::int64_t last = full > 0 ? split(run, full) : run;
      const std::int64_t rest = group.count - placed;  // fewer than a bin takes
      if (rest > 0) {
        if (runs_[last].num_bins > 1) keep(split(last, 1), index);
        add(last, {group.size, rest}, first_piece + placed);
        placed += rest;
      }
      keep(last, index);
    }
    if (full > 0) {
      add(run, {group.size, per_bin}, first_piece);
      keep(run, index);
    }
    return placed;
  }

  template <class Index>
  void keep(std::int64_t run, Index& index) {
    const Run& kept = runs_[run];
    if (kept.free >= smallest_ && kept.pieces < max_segments_)
      index.insert(run, kept.first_bin, kept.free);
  }

  template <class F>
  void each_run(F&& f) const;
  std::int64_t open(std::int64_t bins);
  std::int64_t split(std::int64_t run, std::int64_t bins);  // the run behind the first `bins`
  void add(std::int64_t run, SizeGroup each_bin, std::int64_t first_piece);

  std::int32_t capacity_;
  std::int32_t smallest_;
  std::int64_t max_segments_;
  std::int32_t num_bins_ = 0;
  std::int32_t last_run_ = -1;
  std::vector<Run> runs_;  // the first one holds bin 0
  std::vector<Placement> placements_;
};

}  // namespace brimful
