// The sort that puts units in order of placing: one counting pass over them where the capacity is
// small beside their number, else a radix sort.
#include "plan/pieces.hpp"

#include <utility>

#include "plan/large.hpp"
#include "plan/seeded.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Turns counts by size into groups, largest first, and into the place of each size's first unit.
std::vector<PieceGroup> take_places(std::vector<std::int64_t>& counts) {
  std::vector<PieceGroup> groups;
  std::int64_t place = 0;
  for (std::size_t size = counts.size(); size-- > 0;) {
    const std::int64_t count = counts[size];
    counts[size] = place;
    place += count;
    if (count > 0) groups.push_back({static_cast<std::int32_t>(size), count});
  }
  return groups;
}

struct Piece {
  std::int64_t document;
  std::int64_t start;
  std::int32_t size;
};

std::int32_t size_of(const Piece& piece) { return piece.size; }
std::int32_t size_of(std::int32_t size) { return size; }

// Stable, largest first: one counting pass for each 11 bits of the capacity.
template <class T>
void radix_sort_decreasing(std::vector<T>& pieces, std::int64_t capacity) {
  constexpr int kBits = 11;
  constexpr std::size_t kDigits = 1U << kBits;
  std::vector<T> sorted(pieces.size());
  for (int shift = 0; capacity >> shift > 0; shift += kBits) {
    const auto digit = [shift](const T& piece) {
      return (static_cast<std::uint32_t>(size_of(piece)) >> shift) & (kDigits - 1);
    };
    std::vector<std::int64_t> places(kDigits);
    for (const T& piece : pieces) ++places[digit(piece)];
    std::int64_t place = 0;
    for (std::size_t d = kDigits; d-- > 0;) place += std::exchange(places[d], place);
    for (const T& piece : pieces) sorted[at(places[digit(piece)]++)] = piece;
    pieces.swap(sorted);
  }
}

void extend(std::vector<PieceGroup>& groups, std::int32_t size) {
  if (groups.empty() || groups.back().size != size) groups.push_back({size, 0});
  ++groups.back().count;
}

}  // namespace

PieceSequence decreasing_sequence(const Units& units, std::int64_t num_units, bool with_starts) {
  PieceSequence sequence;
  const std::int64_t capacity = units.capacity();
  reserve_large(sequence.documents, at(num_units));
  sequence.documents.resize(at(num_units));
  if (with_starts) sequence.starts.resize(at(num_units));
  if (table_pays(capacity, num_units)) {
    std::vector<std::int64_t> places(at(capacity + 1));
    units.each([&](const Unit& unit) { ++places[at(unit.size)]; });
    sequence.groups = take_places(places);
    units.each([&](const Unit& unit) {
      const std::size_t place = at(places[at(unit.size)]++);
      sequence.documents[place] = unit.document;
      if (with_starts) sequence.starts[place] = unit.start;
    });
    return sequence;
  }
  std::vector<Piece> pieces;
  reserve_large(pieces, at(num_units));
  units.each([&](const Unit& unit) { pieces.push_back({unit.document, unit.start, unit.size}); });
  radix_sort_decreasing(pieces, capacity);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sequence.documents[i] = pieces[i].document;
    if (with_starts) sequence.starts[i] = pieces[i].start;
    extend(sequence.groups, pieces[i].size);
  }
  return sequence;
}

void shuffle_equal(PieceSequence& sequence, std::uint64_t seed) {
  Shuffler shuffler(seed);
  std::size_t first = 0;
  for (const PieceGroup& group : sequence.groups) {
    shuffler.shuffle(at(group.count), [&](std::size_t i, std::size_t j) {
      std::swap(sequence.documents[first + i], sequence.documents[first + j]);
      if (!sequence.starts.empty()) {
        std::swap(sequence.starts[first + i], sequence.starts[first + j]);
      }
    });
    first += at(group.count);
  }
}

std::vector<PieceGroup> size_histogram(std::span<const std::int32_t> sizes, std::int64_t capacity) {
  if (table_pays(capacity, static_cast<std::int64_t>(sizes.size()))) {
    std::vector<std::int64_t> counts(at(capacity + 1));
    for (const std::int32_t size : sizes) ++counts[at(size)];
    return take_places(counts);
  }
  std::vector<std::int32_t> sorted(sizes.begin(), sizes.end());
  radix_sort_decreasing(sorted, capacity);
  std::vector<PieceGroup> groups;
  for (const std::int32_t size : sorted) extend(groups, size);
  return groups;
}

}  // namespace brimful
