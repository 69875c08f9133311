// Concat appends and cuts; best fit chooses all bins first, then sorts the pieces by bin.
#include "plan/arrival.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "plan/best_fit.hpp"
#include "plan/large.hpp"
#include "plan/pieces.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

struct Placed {
  std::vector<std::int64_t> bins;  // of each piece, in arrival order
  std::int64_t num_bins = 0;
};

// One piece after the other: the index knows a bin by its number.
template <class Index>
Placed choose_bins(Index index, std::span<const std::int64_t> lengths, std::int64_t capacity,
                   Overlong overlong, std::int64_t num_pieces) {
  auto shortest = static_cast<std::int32_t>(capacity);
  each_piece(lengths, capacity, overlong, [&](std::int64_t, std::int64_t, std::int32_t length) {
    shortest = std::min(shortest, length);
  });
  Placed placed;
  reserve_large(placed.bins, at(num_pieces));
  std::vector<std::int32_t> free;  // by bin
  each_piece(lengths, capacity, overlong, [&](std::int64_t, std::int64_t, std::int32_t length) {
    std::int64_t bin = index.take(length);
    if (bin < 0) {
      bin = static_cast<std::int64_t>(free.size());
      free.push_back(static_cast<std::int32_t>(capacity));
    }
    const std::int32_t left = free[at(bin)] -= length;
    if (left >= shortest) index.insert(bin, bin, left);
    placed.bins.push_back(bin);
  });
  placed.num_bins = static_cast<std::int64_t>(free.size());
  return placed;
}

}  // namespace

void place_end_to_end(std::span<const std::int64_t> lengths, Packing& packing) {
  packing.bin_offsets.push_back(0);
  std::int64_t room = packing.capacity;
  const auto close_bin = [&] {
    packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size()));
    room = packing.capacity;
  };
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    for (std::int64_t start = 0; start < lengths[document];) {
      const std::int64_t length = std::min(lengths[document] - start, room);
      packing.documents.push_back(static_cast<std::int64_t>(document));
      packing.starts.push_back(start);
      packing.lengths.push_back(static_cast<std::int32_t>(length));
      start += length;
      room -= length;
      if (room == 0) close_bin();
    }
  }
  if (room < packing.capacity) close_bin();
}

void place_best_fit(std::span<const std::int64_t> lengths, Overlong overlong,
                    std::int64_t num_pieces, Packing& packing) {
  const std::int64_t capacity = packing.capacity;
  const Placed placed =
      table_pays(capacity, num_pieces)
          ? choose_bins(BestFitTable(capacity), lengths, capacity, overlong, num_pieces)
          : choose_bins(BestFitBuckets(capacity, num_pieces), lengths, capacity, overlong,
                        num_pieces);
  packing.bin_offsets.resize(at(placed.num_bins + 1));
  for (const std::int64_t bin : placed.bins) ++packing.bin_offsets[at(bin + 1)];
  std::partial_sum(packing.bin_offsets.begin(), packing.bin_offsets.end(),
                   packing.bin_offsets.begin());
  packing.documents.resize(at(num_pieces));
  packing.starts.resize(at(num_pieces));
  packing.lengths.resize(at(num_pieces));
  std::vector<std::int64_t> places = packing.bin_offsets;  // of each bin's next piece
  auto bin = placed.bins.begin();
  each_piece(lengths, capacity, overlong,
             [&](std::int64_t document, std::int64_t start, std::int32_t length) {
               const std::size_t place = at(places[at(*bin++)]++);
               packing.documents[place] = document;
               packing.starts[place] = start;
               packing.lengths[place] = length;
             });
}

}  // namespace brimful
