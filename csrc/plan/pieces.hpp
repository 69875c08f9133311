// Units from large to small: their order, and how many there are of each size. A piece without
// constraints is a unit, and its length in tokens is its size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/large.hpp"
#include "plan/units.hpp"

namespace brimful {

// Units largest first; those of one size by document number, then by start, or in an order by seed.
struct PieceSequence {
  UnsetVector<std::int32_t> documents;  // [units] the first one of each
  std::vector<std::int64_t> starts;     // [units], or empty when every unit starts at token 0
  std::vector<SizeGroup> groups;        // their counts add up to the units
};

// Most documents, and most units, that a sequence can hold.
inline constexpr std::int64_t kMostInSequence = (std::int64_t{1} << 31) - 1;

// `num_units` is survey()'s. Throws PlanError for more than kMostInSequence. With starts where
// documents may have been split.
PieceSequence decreasing_sequence(const Units& units, std::int64_t num_units, bool with_starts);

// How many documents have each length, [capacity + 1], if none is negative or longer than a bin
// takes: then all units are whole documents, and this is their survey too. For units without
// constraints on sizes.
std::optional<std::vector<std::uint32_t>> count_lengths(const Units& units);

// The same sequence, from these counts. Throws PlanError if they are not those of the lengths,
// which somebody has written to then.
PieceSequence decreasing_sequence(const Units& units, std::span<const std::uint32_t> counts);

// Puts the units of each size into random order, the same for the same seed.
void shuffle_equal(PieceSequence& sequence, std::uint64_t seed);

// A table with an entry for each size up to the capacity pays off: it costs no more than the
// units do, or next to nothing.
inline bool table_pays(std::int64_t capacity, std::int64_t num_units) {
  return capacity <= 65536 || capacity / 4 <= num_units;
}

// The distinct sizes, largest first, with their counts.
std::vector<SizeGroup> size_histogram(std::span<const std::int32_t> sizes, std::int64_t capacity);

}  // namespace brimful
