// The sort that puts units in order of placing: one counting pass over them where the capacity is
// small beside their number, else a radix sort.
#include "plan/pieces.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "plan/large.hpp"
#include "plan/seeded.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Turns counts by size into groups, largest first, and into the place of each size's first unit.
template <class Count>
std::vector<SizeGroup> take_places(std::vector<Count>& counts) {
  std::vector<SizeGroup> groups;
  Count place = 0;
  for (std::size_t size = counts.size(); size-- > 0;) {
    const Count count = std::exchange(counts[size], place);
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

void extend(std::vector<SizeGroup>& groups, std::int32_t size) {
  if (groups.empty() || groups.back().size != size) groups.push_back({size, 0});
  ++groups.back().count;
}

// Memory that another thread may write to, read once: what was checked is what is used.
std::uint64_t read_once(const std::int64_t& length) {
  return static_cast<std::uint64_t>(__atomic_load_n(&length, __ATOMIC_RELAXED));
}

void check_most(std::int64_t documents, std::int64_t num_units) {
  if (std::max(documents, num_units) <= kMostInSequence) return;
  throw PlanError(std::to_string(documents) + " documents in " + std::to_string(num_units) +
                  " pieces are more than the " + std::to_string(kMostInSequence) +
                  " that can be sorted at once: pack parts of them, or choose "
                  "strategy=\"streaming\"");
}

}  // namespace

PieceSequence decreasing_sequence(const Units& units, std::int64_t num_units, bool with_starts) {
  check_most(static_cast<std::int64_t>(units.lengths().size()), num_units);
  PieceSequence sequence;
  const std::int64_t capacity = units.capacity();
  reserve_large(sequence.documents, at(num_units));
  sequence.documents.resize(at(num_units));
  if (with_starts) sequence.starts.resize(at(num_units));
  if (table_pays(capacity, num_units)) {
    std::vector<std::uint32_t> places(at(capacity + 1));
    units.each([&](const Unit& unit) { ++places[at(unit.size)]; });
    sequence.groups = take_places(places);
    units.each([&](const Unit& unit) {
      const std::size_t place = at(places[at(unit.size)]++);
      sequence.documents[place] = static_cast<std::int32_t>(unit.document);
      if (with_starts) sequence.starts[place] = unit.start;
    });
    return sequence;
  }
  std::vector<Piece> pieces;
  reserve_large(pieces, at(num_units));
  units.each([&](const Unit& unit) { pieces.push_back({unit.document, unit.start, unit.size}); });
  radix_sort_decreasing(pieces, capacity);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sequence.documents[i] = static_cast<std::int32_t>(pieces[i].document);
    if (with_starts) sequence.starts[i] = pieces[i].start;
    extend(sequence.groups, pieces[i].size);
  }
  return sequence;
}

std::optional<std::vector<std::uint32_t>> count_lengths(const Units& units) {
  const std::span<const std::int64_t> lengths = units.lengths();
  const std::size_t sizes = at(units.capacity() + 1);
  const auto longest = static_cast<std::uint64_t>(units.rule().payload());
  // Four tables, as equal lengths in a row would wait for each other's count.
  std::vector<std::uint32_t> counts(4 * sizes);
  std::uint32_t* const table = counts.data();
  const std::size_t fours = lengths.size() / 4 * 4;
  for (std::size_t i = 0; i < fours; i += 4) {
    const std::uint64_t a = read_once(lengths[i]);
    const std::uint64_t b = read_once(lengths[i + 1]);
    const std::uint64_t c = read_once(lengths[i + 2]);
    const std::uint64_t d = read_once(lengths[i + 3]);
    if (std::max(std::max(a, b), std::max(c, d)) > longest) return std::nullopt;
    ++table[a];
    ++table[sizes + b];
    ++table[2 * sizes + c];
    ++table[3 * sizes + d];
  }
  for (std::size_t i = fours; i < lengths.size(); ++i) {
    const std::uint64_t length = read_once(lengths[i]);
    if (length > longest) return std::nullopt;
    ++table[length];
  }
  for (std::size_t size = 0; size < sizes; ++size) {
    table[size] += table[sizes + size] + table[2 * sizes + size] + table[3 * sizes + size];
  }
  counts.resize(sizes);
  return counts;
}

PieceSequence decreasing_sequence(const Units& units, std::span<const std::uint32_t> counts) {
  const std::span<const std::int64_t> lengths = units.lengths();
  PieceSequence sequence;
  reserve_large(sequence.documents, lengths.size());
  sequence.documents.resize(lengths.size());
  std::vector<std::uint32_t> places(counts.begin(), counts.end());
  sequence.groups = take_places(places);
  std::uint32_t* const place = places.data();
  std::int32_t* const documents = sequence.documents.data();
  const auto n = static_cast<std::int32_t>(lengths.size());
  std::int32_t i = 0;
  for (; i < n; ++i) {
    const std::uint64_t length = read_once(lengths[at(i)]);
    if (length >= counts.size() || place[length] >= lengths.size()) break;
    documents[place[length]++] = i;
  }
  // Each size ends where the next smaller one began.
  std::uint32_t end = 0;
  for (std::size_t size = counts.size(); size-- > 0;) {
    end += counts[size];
    if (i < n || place[size] != end) {
      throw PlanError("lengths changed while they were packed; pack a copy of what others write");
    }
  }
  if (counts[0] > 0) {  // empty documents stand last
    sequence.documents.resize(lengths.size() - counts[0]);
    sequence.groups.pop_back();
  }
  return sequence;
}

void shuffle_equal(PieceSequence& sequence, std::uint64_t seed) {
  Shuffler shuffler(seed);
  std::size_t first = 0;
  for (const SizeGroup& group : sequence.groups) {
    shuffler.shuffle(at(group.count), [&](std::size_t i, std::size_t j) {
      std::swap(sequence.documents[first + i], sequence.documents[first + j]);
      if (!sequence.starts.empty()) {
        std::swap(sequence.starts[first + i], sequence.starts[first + j]);
      }
    });
    first += at(group.count);
  }
}

std::vector<SizeGroup> size_histogram(std::span<const std::int32_t> sizes, std::int64_t capacity) {
  if (table_pays(capacity, static_cast<std::int64_t>(sizes.size()))) {
    std::vector<std::int64_t> counts(at(capacity + 1));
    for (const std::int32_t size : sizes) ++counts[at(size)];
    return take_places(counts);
  }
  std::vector<std::int32_t> sorted(sizes.begin(), sizes.end());
  radix_sort_decreasing(sorted, capacity);
  std::vector<SizeGroup> groups;
  for (const std::int32_t size : sorted) extend(groups, size);
  return groups;
}

}  // namespace brimful
