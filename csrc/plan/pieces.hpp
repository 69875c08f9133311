// Pieces: what the overlong rule leaves of each document, and their order from long to short. The
// rule is applied while walking the lengths: pieces in arrival order are never listed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packer.hpp"

namespace brimful {

// Calls f(document, start, length) for each piece, in arrival order. A split document gives pieces
// of the capacity and then its remainder; empty documents give none. Lengths must be surveyed
// before.
template <class F>
void each_piece(std::span<const std::int64_t> lengths, std::int64_t capacity, Overlong overlong,
                F&& f) {
  const auto documents = static_cast<std::int64_t>(lengths.size());
  for (std::int64_t document = 0; document < documents; ++document) {
    std::int64_t length = lengths[static_cast<std::size_t>(document)];
    std::int64_t start = 0;
    if (length > capacity) [[unlikely]] {
      if (overlong == Overlong::kDrop) continue;
      if (overlong == Overlong::kTruncate) length = capacity;
      while (length > capacity) {
        f(document, start, static_cast<std::int32_t>(capacity));
        start += capacity;
        length -= capacity;
      }
    }
    if (length > 0) f(document, start, static_cast<std::int32_t>(length));
  }
}

// Checks lengths and capacity, fills the counters of `packing`, and returns the number of pieces.
// Throws as pack() does. kConcat is surveyed too, whatever the overlong rule.
std::int64_t survey(std::span<const std::int64_t> lengths, Strategy strategy, Overlong overlong,
                    Packing& packing);

// Pieces of one length.
struct PieceGroup {
  std::int32_t length = 0;
  std::int64_t count = 0;
};

// Pieces longest first; equal lengths by document number, then by start.
struct PieceSequence {
  std::vector<std::int64_t> documents;  // [pieces]
  std::vector<std::int64_t> starts;     // [pieces], or empty when every piece starts at token 0
  std::vector<PieceGroup> groups;       // their counts add up to the pieces
};

// `num_pieces` and the counters of `surveyed` are survey()'s.
PieceSequence decreasing_sequence(std::span<const std::int64_t> lengths, Overlong overlong,
                                  const Packing& surveyed, std::int64_t num_pieces);

// A table with an entry for each length up to the capacity pays off: it costs no more than the
// pieces do, or next to nothing.
inline bool table_pays(std::int64_t capacity, std::int64_t num_pieces) {
  return capacity <= 65536 || capacity / 4 <= num_pieces;
}

// The distinct lengths, longest first, with their counts.
std::vector<PieceGroup> length_histogram(std::span<const std::int32_t> lengths,
                                         std::int64_t capacity);

}  // namespace brimful
