// pack(): checks, cuts and orders the pieces, and lets the strategy's index place them.
#include "plan/packer.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "plan/arrival.hpp"
#include "plan/best_fit.hpp"
#include "plan/bin_runs.hpp"
#include "plan/first_fit.hpp"
#include "plan/large.hpp"
#include "plan/pieces.hpp"
#include "plan/streaming.hpp"

namespace brimful {
namespace {

constexpr std::array<std::pair<std::string_view, Strategy>, 6> kStrategies{{
    {"concat", Strategy::kConcat},
    {"first_fit_decreasing", Strategy::kFirstFitDecreasing},
    {"best_fit_decreasing", Strategy::kBestFitDecreasing},
    {"best_fit", Strategy::kBestFit},
    {"pad", Strategy::kPad},
    {"streaming", Strategy::kStreaming},
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

void place_apart(std::span<const std::int64_t> lengths, Overlong overlong, Packing& packing) {
  packing.bin_offsets.push_back(0);
  each_piece(lengths, packing.capacity, overlong,
             [&](std::int64_t document, std::int64_t start, std::int32_t length) {
               packing.documents.push_back(document);
               packing.starts.push_back(start);
               packing.lengths.push_back(length);
               packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size()));
             });
}

template <class Index>
void place_sequence(Index index, const PieceSequence& sequence, Packing& packing) {
  BinRuns bins(packing.capacity, sequence.groups.back().length);
  std::int64_t piece = 0;
  for (const PieceGroup& group : sequence.groups) {
    bins.place(group, piece, index);
    piece += group.count;
  }
  bins.write(sequence, packing);
}

void place_decreasing(std::span<const std::int64_t> lengths, Overlong overlong,
                      std::int64_t num_pieces, Strategy strategy, Packing& packing) {
  const PieceSequence sequence = decreasing_sequence(lengths, overlong, packing, num_pieces);
  if (strategy == Strategy::kFirstFitDecreasing) {
    place_sequence(FirstFitTree(), sequence, packing);
  } else if (table_pays(packing.capacity, num_pieces)) {
    place_sequence(BestFitTable(packing.capacity), sequence, packing);
  } else {
    place_sequence(BestFitBuckets(packing.capacity, num_pieces), sequence, packing);
  }
}

void place(std::span<const std::int64_t> lengths, std::int64_t num_pieces,
           const PackOptions& options, Packing& packing) {
  if (num_pieces == 0) {
    packing.bin_offsets = {0};
    return;
  }
  reserve_large(packing.documents, static_cast<std::size_t>(num_pieces));
  reserve_large(packing.starts, static_cast<std::size_t>(num_pieces));
  reserve_large(packing.lengths, static_cast<std::size_t>(num_pieces));
  const Overlong overlong = options.overlong;
  if (options.strategy == Strategy::kConcat) {
    place_end_to_end(lengths, packing);
  } else if (options.strategy == Strategy::kPad) {
    place_apart(lengths, overlong, packing);
  } else if (options.strategy == Strategy::kBestFit) {
    place_best_fit(lengths, overlong, num_pieces, packing);
  } else if (options.strategy == Strategy::kStreaming) {
    place_streaming(lengths, overlong, options.buffer, packing);
  } else {
    place_decreasing(lengths, overlong, num_pieces, options.strategy, packing);
  }
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
  Packing packing;
  packing.capacity = capacity;
  const std::int64_t num_pieces = survey(lengths, options.strategy, options.overlong, packing);
  const auto too_many = [&] {
    return PlanError("packing " + std::to_string(packing.tokens) + " tokens into bins of " +
                     std::to_string(capacity) + " takes " + std::to_string(num_pieces) +
                     " pieces, more than memory holds: raise the capacity or pack fewer documents");
  };
  try {
    place(lengths, num_pieces, options, packing);
  } catch (const std::bad_alloc&) {
    throw too_many();
  } catch (const std::length_error&) {
    throw too_many();
  }
  return packing;
}

}  // namespace brimful
