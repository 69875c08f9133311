// The packers: document lengths in, bins out. Pure functions; lengths and capacity in tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace brimful {

enum class Strategy : std::uint8_t {
  kConcat,              // documents end to end, cut wherever a bin is full
  kFirstFitDecreasing,  // longest first, into the first bin with room
  kBestFitDecreasing,   // longest first, into the fullest bin with room
  kBestFit,             // arrival order, into the fullest bin with room
  kPad,                 // arrival order, each piece in a bin of its own: plain padding
  kStreaming,           // arrival order all but kept, each bin filled from a buffer
};

// What becomes of a document longer than the capacity. kConcat cuts anywhere and needs no rule.
enum class Overlong : std::uint8_t { kSplit, kTruncate, kDrop, kError };

std::optional<Strategy> parse_strategy(std::string_view name);
std::optional<Overlong> parse_overlong(std::string_view name);

// Bins in compressed sparse rows: bin b holds pieces bin_offsets[b] .. bin_offsets[b+1].
struct Packing {
  std::int64_t capacity = 0;
  std::vector<std::int64_t> bin_offsets;  // [bins + 1]
  std::vector<std::int64_t> documents;    // [pieces] index into the lengths given
  std::vector<std::int64_t> starts;       // [pieces] first token of the piece in its document
  std::vector<std::int32_t> lengths;      // [pieces] tokens
  std::int64_t tokens = 0;                // tokens placed
  std::int64_t dropped_documents = 0;     // left out whole, by Overlong::kDrop
  std::int64_t dropped_tokens = 0;        // of dropped documents and cut ends together
  std::int64_t truncated_documents = 0;   // cut to the capacity, the rest lost
  std::int64_t split_documents = 0;       // in more than one piece, nothing lost
  std::int64_t empty_documents = 0;       // of length 0, skipped

  std::int64_t num_bins() const { return static_cast<std::int64_t>(bin_offsets.size()) - 1; }
};

struct PackOptions {
  Strategy strategy = Strategy::kBestFitDecreasing;
  Overlong overlong = Overlong::kSplit;
  std::int64_t buffer = 256;  // pieces that kStreaming chooses from
};

// Places every document. Throws PlanError for a negative length, a capacity outside 1 .. 2^31-1, a
// buffer outside 1 .. 2^16, or a document over the capacity under Overlong::kError.
Packing pack(std::span<const std::int64_t> lengths, std::int64_t capacity,
             const PackOptions& options);

// No packing of these pieces into bins of this capacity can use fewer bins.
std::int64_t lower_bound_bins(std::span<const std::int32_t> piece_lengths, std::int64_t capacity);

}  // namespace brimful
