// The growth, splitting and writing out of runs.
#include "plan/bin_runs.hpp"

#include <algorithm>
#include <utility>

namespace brimful {
namespace {

// Bins that are written at a time: few enough that their lines stay in the cache while each of
// their pieces is written in turn.
constexpr std::int32_t kBlock = 64;

}  // namespace

std::int64_t BinRuns::open(std::int64_t bins) {
  const auto run = static_cast<std::int32_t>(runs_.size());
  const auto num_bins = static_cast<std::int32_t>(bins);
  runs_.push_back({.first_bin = num_bins_, .num_bins = num_bins, .free = capacity_});
  if (last_run_ >= 0) runs_[last_run_].next = run;
  last_run_ = run;
  num_bins_ += num_bins;
  return run;
}

std::int64_t BinRuns::split(std::int64_t run, std::int64_t bins) {
  const auto behind = static_cast<std::int32_t>(runs_.size());
  const auto num_bins = static_cast<std::int32_t>(bins);
  Run other = runs_[run];
  other.first_bin += num_bins;
  other.num_bins -= num_bins;
  runs_[run].num_bins = num_bins;
  runs_[run].next = behind;
  if (last_run_ == run) last_run_ = behind;
  runs_.push_back(other);
  return behind;
}

void BinRuns::add(std::int64_t run, SizeGroup each_bin, std::int64_t first_piece) {
  Run& to = runs_[run];
  const auto per_bin = static_cast<std::int32_t>(each_bin.count);
  placements_.push_back({.earlier = to.placement,
                         .first_bin = to.first_bin,
                         .first_piece = static_cast<std::int32_t>(first_piece),
                         .per_bin = per_bin,
                         .size = each_bin.size});
  to.placement = static_cast<std::int32_t>(placements_.size()) - 1;
  to.pieces += per_bin;
  to.free -= per_bin * each_bin.size;
}

// Calls f(run, content) for each run in the order of their bins; content: what each of its bins
// holds, in the order of placing, with first_piece for the run's first bin.
template <class F>
void BinRuns::each_run(F&& f) const {
  std::vector<Placement> content;
  for (std::int32_t r = runs_.empty() ? -1 : 0; r >= 0; r = runs_[r].next) {
    const Run& run = runs_[r];
    content.clear();
    for (std::int32_t p = run.placement; p >= 0; p = placements_[p].earlier) {
      content.push_back(placements_[p]);
      Placement& of_run = content.back();
      of_run.first_piece += (run.first_bin - of_run.first_bin) * of_run.per_bin;
    }
    std::reverse(content.begin(), content.end());
    f(run, content);
  }
}

// Lays from[0], from[1], .. in bins that begin `stride` apart, `per_bin` in each.
template <class From, class To>
void lay(const From* from, std::int32_t bins, std::int32_t per_bin, std::int32_t stride, To* to) {
  if (per_bin == 1) {
    for (std::int32_t b = 0; b < bins; ++b) to[std::int64_t{b} * stride] = from[b];
    return;
  }
  for (std::int32_t b = 0; b < bins; ++b) {
    for (std::int32_t i = 0; i < per_bin; ++i) to[std::int64_t{b} * stride + i] = *from++;
  }
}

void BinRuns::write(PieceSequence&& sequence, Packing& packing) const {
  const std::size_t units = sequence.documents.size();
  const bool with_starts = !sequence.starts.empty();
  reserve_large(packing.documents, units);
  packing.documents.resize(units);
  reserve_large(packing.starts, units);
  packing.starts.resize(units);
  packing.bin_offsets.resize(static_cast<std::size_t>(num_bins_) + 1);
  const std::int32_t* const documents = sequence.documents.data();
  std::int64_t out = 0;
  std::int64_t* offset = packing.bin_offsets.data();
  *offset = 0;
  each_run([&](const Run& run, std::vector<Placement>& content) {
    for (std::int32_t done = 0; done < run.num_bins; done += kBlock) {
      const std::int32_t bins = std::min(kBlock, run.num_bins - done);
      std::int64_t to = out;
      for (Placement& from : content) {
        lay(documents + from.first_piece, bins, from.per_bin, run.pieces,
            packing.documents.data() + to);
        if (with_starts) {
          lay(sequence.starts.data() + from.first_piece, bins, from.per_bin, run.pieces,
              packing.starts.data() + to);
        }
        from.first_piece += bins * from.per_bin;
        to += from.per_bin;
      }
      for (std::int32_t b = 0; b < bins; ++b) *++offset = out += run.pieces;
    }
  });
  // The documents are written; their memory is as large as that of the lengths.
  packing.lengths = std::move(sequence.documents);
  std::vector<std::int32_t> sizes;  // of a bin's units
  std::int32_t* length = packing.lengths.data();
  each_run([&](const Run& run, const std::vector<Placement>& content) {
    sizes.clear();
    for (const Placement& from : content) sizes.insert(sizes.end(), from.per_bin, from.size);
    for (std::int32_t b = 0; b < run.num_bins; ++b) {
      for (const std::int32_t size : sizes) *length++ = size;
    }
  });
  packing.sizes = std::move(sequence.groups);
}

}  // namespace brimful
