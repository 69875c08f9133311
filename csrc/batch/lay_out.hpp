// Lays out a batch: the segments that it consists of and where each of them stands, without a token
// touched. What is known before any token is read goes into the batch's BatchMeta.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "batch/layout.hpp"
#include "corpus/corpus.hpp"
#include "plan/dealer.hpp"

namespace brimful {

// One stretch of tokens of one document, or (store == nullptr) a tail of pad tokens.
struct Segment {
  const TokenStore* store = nullptr;
  std::int64_t first = 0;             // token of the store
  const std::byte* values = nullptr;  // of the first token, once it is read
  const std::uint8_t* mask = nullptr;
  std::int64_t at = 0;      // place in the flattened batch
  std::int64_t length = 0;  // tokens; of a tail, its slots
  std::int64_t slots = 0;   // length, and the gap behind it up to the alignment
  bool carries = false;     // the token behind the last one is its label: that is to be read too
  std::int64_t document = -1;
  std::int64_t start = 0;  // the first token's place in its document
  std::int32_t id = -1;    // document_ids
  const DocumentRef* ref = nullptr;

  std::int64_t tokens_to_read() const { return length + (carries ? 1 : 0); }
};

// The segments of a batch in their order; fills every field of `meta` but those that reading finds:
// num_items, lost_labels, read_time, bad. The segments point into the windows of `spec`.
std::vector<Segment> lay_out(const BatchSpec& spec, const LayoutConfig& config, BatchMeta& meta);

// Turns segment `number` into a tail, whose place it fills: for a bad piece.
void put_aside(Segment& segment, std::size_t number, BatchMeta& meta);

}  // namespace brimful
