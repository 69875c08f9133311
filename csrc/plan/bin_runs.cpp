// The growth, splitting and writing out of runs.
#include "plan/bin_runs.hpp"

#include <algorithm>

namespace brimful {

std::int64_t BinRuns::open(std::int64_t bins) {
  const auto run = static_cast<std::int64_t>(runs_.size());
  runs_.push_back({.first_bin = num_bins_, .num_bins = bins, .free = capacity_});
  if (last_run_ >= 0) runs_[last_run_].next = run;
  last_run_ = run;
  num_bins_ += bins;
  return run;
}

std::int64_t BinRuns::split(std::int64_t run, std::int64_t bins) {
  const auto behind = static_cast<std::int64_t>(runs_.size());
  Run other = runs_[run];
  other.first_bin += bins;
  other.num_bins -= bins;
  runs_[run].num_bins = bins;
  runs_[run].next = behind;
  if (last_run_ == run) last_run_ = behind;
  runs_.push_back(other);
  return behind;
}

void BinRuns::add(std::int64_t run, PieceGroup each_bin, std::int64_t first_piece) {
  Run& to = runs_[run];
  placements_.push_back({.earlier = to.placement,
                         .first_bin = to.first_bin,
                         .first_piece = first_piece,
                         .per_bin = static_cast<std::int32_t>(each_bin.count),
                         .size = each_bin.size});
  to.placement = static_cast<std::int64_t>(placements_.size()) - 1;
  to.pieces += each_bin.count;
  to.free -= static_cast<std::int32_t>(each_bin.count) * each_bin.size;
}

void BinRuns::write(const PieceSequence& sequence, Packing& packing) const {
  packing.documents.resize(sequence.documents.size());
  packing.starts.resize(sequence.documents.size());
  packing.lengths.resize(sequence.documents.size());
  packing.bin_offsets.resize(static_cast<std::size_t>(num_bins_) + 1);
  const bool with_starts = !sequence.starts.empty();
  std::vector<Placement> content;  // of each bin of a run, latest first
  std::size_t out = 0;
  std::size_t bin = 0;
  for (std::int64_t run = runs_.empty() ? -1 : 0; run >= 0; run = runs_[run].next) {
    content.clear();
    for (std::int64_t p = runs_[run].placement; p >= 0; p = placements_[p].earlier) {
      content.push_back(placements_[p]);
      // From here on: the next unit to write.
      Placement& from = content.back();
      from.first_piece += (runs_[run].first_bin - from.first_bin) * from.per_bin;
    }
    std::reverse(content.begin(), content.end());
    for (std::int64_t i = 0; i < runs_[run].num_bins; ++i) {
      for (Placement& from : content) {
        for (std::int32_t j = 0; j < from.per_bin; ++j, ++out) {
          const auto piece = static_cast<std::size_t>(from.first_piece++);
          packing.documents[out] = sequence.documents[piece];
          if (with_starts) packing.starts[out] = sequence.starts[piece];
          packing.lengths[out] = from.size;
        }
      }
      packing.bin_offsets[++bin] = static_cast<std::int64_t>(out);
    }
  }
}

}  // namespace brimful
