// pack(): checks and surveys the documents, lets the strategy place the units, and turns these into
// pieces.
#include "plan/packer.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "plan/arrival.hpp"
#include "plan/balanced.hpp"
#include "plan/best_fit.hpp"
#include "plan/bin_runs.hpp"
#include "plan/concat.hpp"
#include "plan/first_fit.hpp"
#include "plan/large.hpp"
#include "plan/many_sided.hpp"
#include "plan/pieces.hpp"
#include "plan/streaming.hpp"
#include "plan/units.hpp"

namespace brimful {
namespace {

constexpr std::array<std::pair<std::string_view, Strategy>, 7> kStrategies{{
    {"concat", Strategy::kConcat},
    {"first_fit_decreasing", Strategy::kFirstFitDecreasing},
    {"best_fit_decreasing", Strategy::kBestFitDecreasing},
    {"best_fit", Strategy::kBestFit},
    {"pad", Strategy::kPad},
    {"streaming", Strategy::kStreaming},
    {"balanced", Strategy::kBalanced},
}};
constexpr std::array<std::pair<std::string_view, Overlong>, 4> kOverlongs{{
    {"split", Overlong::kSplit},
    {"truncate", Overlong::kTruncate},
    {"drop", Overlong::kDrop},
    {"error", Overlong::kError},
}};

template <class Table>
auto parse(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

void place_apart(const Units& units, Packing& packing) {
  packing.bin_offsets.push_back(0);
  units.each([&](const Unit& unit) {
    packing.documents.push_back(unit.document);
    packing.starts.push_back(unit.start);
    packing.lengths.push_back(unit.size);
    packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size()));
  });
}

template <class Index>
void place_sequence(Index index, PieceSequence sequence, const Units& units, Packing& packing) {
  BinRuns bins(units.capacity(), sequence.groups.back().size, units.max_segments());
  std::int64_t piece = 0;
  for (const SizeGroup& group : sequence.groups) {
    bins.place(group, piece, index);
    piece += group.count;
  }
  bins.write(std::move(sequence), packing);
}

void place_decreasing(PieceSequence sequence, const Units& units, const PackOptions& options,
                      Packing& packing) {
  const auto num_units = static_cast<std::int64_t>(sequence.documents.size());
  if (options.seed) shuffle_equal(sequence, *options.seed);
  if (options.strategy == Strategy::kFirstFitDecreasing) {
    place_sequence(FirstFitTree(), std::move(sequence), units, packing);
  } else if (table_pays(packing.capacity, num_units)) {
    place_sequence(BestFitTable(packing.capacity), std::move(sequence), units, packing);
  } else {
    place_sequence(BestFitBuckets(packing.capacity, num_units), std::move(sequence), units,
                   packing);
  }
}

bool is_decreasing(Strategy strategy) {
  return strategy == Strategy::kFirstFitDecreasing || strategy == Strategy::kBestFitDecreasing;
}

// Whole documents without constraints on their sizes are counted while they are checked. False,
// with nothing done, where there is more to them.
bool place_whole_documents(const Units& units, const PackOptions& options, Packing& packing) {
  const auto documents = static_cast<std::int64_t>(units.lengths().size());
  if (!is_decreasing(options.strategy) || !units.plain() || documents > kMostInSequence ||
      !table_pays(packing.capacity, documents)) {
    return false;
  }
  const auto counts = count_lengths(units);
  if (!counts || (*counts)[0] == documents) return false;
  PieceSequence sequence = decreasing_sequence(units, *counts);
  packing.empty_documents = (*counts)[0];
  for (const SizeGroup& group : sequence.groups) packing.tokens += group.size * group.count;
  place_decreasing(std::move(sequence), units, options, packing);
  return true;
}

void place(const Units& units, std::int64_t num_units, const PackOptions& options,
           Packing& packing) {
  if (num_units == 0) {
    packing.bin_offsets.assign(static_cast<std::size_t>(options.bins.value_or(0)) + 1, 0);
    return;
  }
  packing.reserve(num_units);
  if (options.strategy == Strategy::kConcat) {
    place_end_to_end(units, packing);
    return;
  }
  if (options.strategy == Strategy::kPad) {
    place_apart(units, packing);
  } else if (options.strategy == Strategy::kStreaming) {
    place_streaming(units, options.buffer, packing);
  } else if (options.strategy == Strategy::kBalanced) {
    place_balanced(units, num_units, options, packing);
  } else if (units.many_sided()) {
    place_many_sided(units, num_units, options.strategy, options.seed, packing);
  } else if (options.strategy == Strategy::kBestFit) {
    place_best_fit(units, num_units, packing);
  } else {
    place_decreasing(decreasing_sequence(units, num_units, packing.split_documents > 0), units,
                     options, packing);
  }
  units.unfold(packing);
}

// The kernel promises more memory than there is, and ends the process that comes to use it: so what
// cannot be held is refused before it is begun.
bool memory_holds(std::int64_t pieces) {
  constexpr std::int64_t kBytesAPiece = 28;  // of the plan, with bins of one piece
  const std::int64_t bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  return pieces <= bytes / kBytesAPiece;
}

void check_buffer(std::int64_t buffer) {
  constexpr std::int64_t kMost = 1 << 16;  // pieces; more would take seconds a bin
  if (buffer < 1 || buffer > kMost) {
    throw PlanError("buffer is " + std::to_string(buffer) + " documents; it must be from 1 to " +
                    std::to_string(kMost));
  }
}

}  // namespace

std::optional<Strategy> parse_strategy(std::string_view name) { return parse(kStrategies, name); }
std::optional<Overlong> parse_overlong(std::string_view name) { return parse(kOverlongs, name); }

Packing pack(std::span<const std::int64_t> lengths, std::int64_t capacity,
             const PackOptions& options) {
  check_buffer(options.buffer);
  check_bins(options);
  const Units given(lengths, capacity, options);
  Packing packing;
  packing.capacity = capacity;
  constexpr std::size_t kBytesAPiece = 22;  // of the packing, bins and the way there included
  expect_memory(kBytesAPiece * lengths.size());
  if (place_whole_documents(given, options, packing)) return packing;
  const Units units = given.copied();
  const UnitCounts counts = units.survey(options.strategy, packing);
  const auto too_many = [&] {
    const std::int64_t pieces =
        options.strategy == Strategy::kConcat ? count_end_to_end(units) : counts.pieces;
    return PlanError("packing " + std::to_string(packing.tokens) + " tokens into bins of " +
                     std::to_string(capacity) + " takes " + std::to_string(pieces) +
                     " pieces, more than memory holds: raise the capacity or pack fewer documents");
  };
  if (!memory_holds(counts.units)) throw too_many();
  try {
    place(units, counts.units, options, packing);
  } catch (const std::bad_alloc&) {
    throw too_many();
  } catch (const std::length_error&) {
    throw too_many();
  }
  return packing;
}

}  // namespace brimful
