// The packers: document lengths in, bins out. Pure functions; lengths and capacity in tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plan/large.hpp"

namespace brimful {

enum class Strategy : std::uint8_t {
  kConcat,              // documents end to end, cut wherever a bin is full
  kFirstFitDecreasing,  // longest first, into the first bin with room
  kBestFitDecreasing,   // longest first, into the fullest bin with room
  kBestFit,             // arrival order, into the fullest bin with room
  kPad,                 // arrival order, each piece in a bin of its own: plain padding
  kStreaming,           // arrival order all but kept, each bin filled from a buffer
  kBalanced,            // a number of bins with about the same attention work
};

// What becomes of a document longer than a bin takes. kConcat cuts anywhere and needs no rule.
enum class Overlong : std::uint8_t { kSplit, kTruncate, kDrop, kError };

std::optional<Strategy> parse_strategy(std::string_view name);
std::optional<Overlong> parse_overlong(std::string_view name);

// Units of one size: what is placed as a whole, and the slots it takes.
struct SizeGroup {
  std::int32_t size = 0;
  std::int64_t count = 0;
};

// Bins in compressed sparse rows: bin b holds pieces bin_offsets[b] .. bin_offsets[b+1].
struct Packing {
  std::int64_t capacity = 0;
  UnsetVector<std::int64_t> bin_offsets;  // [bins + 1]
  UnsetVector<std::int64_t> documents;    // [pieces] index into the lengths given
  ZeroVector<std::int64_t> starts;        // [pieces] first token of the piece in its document
  UnsetVector<std::int32_t> lengths;      // [pieces] tokens
  std::vector<SizeGroup> sizes;           // of all units, largest first; or empty: not counted
  std::int64_t tokens = 0;                // tokens placed
  std::int64_t dropped_documents = 0;     // left out whole, by Overlong::kDrop
  std::int64_t dropped_tokens = 0;        // of dropped documents and cut ends together
  std::int64_t truncated_documents = 0;   // cut to what a bin takes, the rest lost
  std::int64_t split_documents = 0;       // in more than one piece, nothing lost
  std::int64_t empty_documents = 0;       // of length 0, skipped

  // Memory for so many pieces.
  void reserve(std::int64_t pieces) {
    reserve_large(documents, static_cast<std::size_t>(pieces));
    reserve_large(starts, static_cast<std::size_t>(pieces));
    reserve_large(lengths, static_cast<std::size_t>(pieces));
  }
  std::int64_t num_bins() const { return static_cast<std::int64_t>(bin_offsets.size()) - 1; }
};

struct PackOptions {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  Strategy strategy = Strategy::kBestFitDecreasing;
  Overlong overlong = Overlong::kSplit;
  std::int64_t buffer = 256;               // units that kStreaming chooses from
  std::int64_t max_segments = kUnlimited;  // most pieces in a bin
  std::int64_t align = 1;                  // slots of a piece are a multiple of it
  std::int64_t min_piece = 1;              // fewest tokens in a piece of a document that is cut
  bool start_token = false;                // each piece takes one slot more
  std::optional<std::uint64_t> seed = std::nullopt;  // which of equally large units goes where
  // Documents with the same id are neighbours, and stay together in one bin, in order.
  std::optional<std::span<const std::int64_t>> groups = std::nullopt;  // [documents]
  // A second capacity, as hard as the first: a bin's pieces have no more of it together.
  std::optional<std::span<const std::int64_t>> resource = std::nullopt;  // [documents]
  std::int64_t resource_capacity = 0;
  std::optional<std::int64_t> bins = std::nullopt;  // of kBalanced; else as few as are found
  std::int64_t world_size = 1;                      // kBalanced has a multiple of it for bins
};

// Places every document. Throws PlanError for lengths, a capacity, a buffer or constraints that
// cannot be, and for a document over the capacity under Overlong::kError.
Packing pack(std::span<const std::int64_t> lengths, std::int64_t capacity,
             const PackOptions& options);

}  // namespace brimful
