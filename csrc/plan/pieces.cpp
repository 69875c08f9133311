// The overlong rules' accounting, and the sort that puts pieces in order of placing: one counting
// pass over the lengths where the capacity is small beside them, else a radix sort.
#include "plan/pieces.hpp"

#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "plan/large.hpp"

namespace brimful {
namespace {

std::string overlong_message(std::int64_t document, std::int64_t length, std::int64_t capacity) {
  return "document " + std::to_string(document) + " has " + std::to_string(length) +
         " tokens, more than the capacity of " + std::to_string(capacity) +
         ": choose overlong=\"split\", \"truncate\" or \"drop\", or raise the capacity";
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Turns counts by length into groups, longest first, and into the place of each length's first
// piece.
std::vector<PieceGroup> take_places(std::vector<std::int64_t>& counts) {
  std::vector<PieceGroup> groups;
  std::int64_t place = 0;
  for (std::size_t length = counts.size(); length-- > 0;) {
    const std::int64_t count = counts[length];
    counts[length] = place;
    place += count;
    if (count > 0) groups.push_back({static_cast<std::int32_t>(length), count});
  }
  return groups;
}

struct Piece {
  std::int64_t document;
  std::int64_t start;
  std::int32_t length;
};

std::int32_t length_of(const Piece& piece) { return piece.length; }
std::int32_t length_of(std::int32_t length) { return length; }

// Stable, longest first: one counting pass for each 11 bits of the longest length.
template <class T>
void radix_sort_decreasing(std::vector<T>& pieces, std::int64_t capacity) {
  constexpr int kBits = 11;
  constexpr std::size_t kDigits = 1U << kBits;
  std::vector<T> sorted(pieces.size());
  for (int shift = 0; capacity >> shift > 0; shift += kBits) {
    const auto digit = [shift](const T& piece) {
      return (static_cast<std::uint32_t>(length_of(piece)) >> shift) & (kDigits - 1);
    };
    std::vector<std::int64_t> places(kDigits);
    for (const T& piece : pieces) ++places[digit(piece)];
    std::int64_t place = 0;
    for (std::size_t d = kDigits; d-- > 0;) place += std::exchange(places[d], place);
    for (const T& piece : pieces) sorted[at(places[digit(piece)]++)] = piece;
    pieces.swap(sorted);
  }
}

void extend(std::vector<PieceGroup>& groups, std::int32_t length) {
  if (groups.empty() || groups.back().length != length) groups.push_back({length, 0});
  ++groups.back().count;
}

}  // namespace

std::int64_t survey(std::span<const std::int64_t> lengths, Strategy strategy, Overlong overlong,
                    Packing& packing) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t capacity = packing.capacity;
  if (capacity < 1 || capacity > kMost) {
    throw PlanError("the capacity of a bin is " + std::to_string(capacity) +
                    " tokens; it must be from 1 to " + std::to_string(kMost));
  }
  const bool concat = strategy == Strategy::kConcat;
  std::int64_t pieces = 0;
  std::int64_t seen = 0;  // tokens, kept or lost
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t length = lengths[i];
    if (length < 0) {
      throw PlanError("document " + std::to_string(i) + " has a length of " +
                      std::to_string(length) + " tokens; lengths cannot be negative");
    }
    if (__builtin_add_overflow(seen, length, &seen)) {
      throw PlanError("the documents up to number " + std::to_string(i) +
                      " have more than 2^63 - 1 tokens; check the lengths");
    }
    packing.empty_documents += length == 0;
    if (concat) {
      if (length == 0) continue;
      const std::int64_t bins = (seen - 1) / capacity - (seen - length) / capacity + 1;
      pieces += bins;
      packing.split_documents += bins > 1;
    } else if (length <= capacity) {
      pieces += length > 0;
    } else if (overlong == Overlong::kSplit) {
      pieces += (length - 1) / capacity + 1;
      ++packing.split_documents;
    } else if (overlong == Overlong::kTruncate) {
      ++pieces;
      ++packing.truncated_documents;
      packing.dropped_tokens += length - capacity;
    } else if (overlong == Overlong::kDrop) {
      ++packing.dropped_documents;
      packing.dropped_tokens += length;
    } else {
      throw PlanError(overlong_message(static_cast<std::int64_t>(i), length, capacity));
    }
  }
  packing.tokens = seen - packing.dropped_tokens;
  return pieces;
}

PieceSequence decreasing_sequence(std::span<const std::int64_t> lengths, Overlong overlong,
                                  const Packing& surveyed, std::int64_t num_pieces) {
  PieceSequence sequence;
  const std::int64_t capacity = surveyed.capacity;
  const bool with_starts = surveyed.split_documents > 0;
  reserve_large(sequence.documents, at(num_pieces));
  sequence.documents.resize(at(num_pieces));
  if (with_starts) sequence.starts.resize(at(num_pieces));
  if (table_pays(capacity, num_pieces)) {
    std::vector<std::int64_t> places(at(capacity + 1));
    each_piece(lengths, capacity, overlong,
               [&](std::int64_t, std::int64_t, std::int32_t length) { ++places[at(length)]; });
    sequence.groups = take_places(places);
    each_piece(lengths, capacity, overlong,
               [&](std::int64_t document, std::int64_t start, std::int32_t length) {
                 const std::size_t place = at(places[at(length)]++);
                 sequence.documents[place] = document;
                 if (with_starts) sequence.starts[place] = start;
               });
    return sequence;
  }
  std::vector<Piece> pieces;
  reserve_large(pieces, at(num_pieces));
  each_piece(lengths, capacity, overlong,
             [&](std::int64_t document, std::int64_t start, std::int32_t length) {
               pieces.push_back({document, start, length});
             });
  radix_sort_decreasing(pieces, capacity);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sequence.documents[i] = pieces[i].document;
    if (with_starts) sequence.starts[i] = pieces[i].start;
    extend(sequence.groups, pieces[i].length);
  }
  return sequence;
}

std::vector<PieceGroup> length_histogram(std::span<const std::int32_t> lengths,
                                         std::int64_t capacity) {
  if (table_pays(capacity, static_cast<std::int64_t>(lengths.size()))) {
    std::vector<std::int64_t> counts(at(capacity + 1));
    for (const std::int32_t length : lengths) ++counts[at(length)];
    return take_places(counts);
  }
  std::vector<std::int32_t> sorted(lengths.begin(), lengths.end());
  radix_sort_decreasing(sorted, capacity);
  std::vector<PieceGroup> groups;
  for (const std::int32_t length : sorted) extend(groups, length);
  return groups;
}

}  // namespace brimful
