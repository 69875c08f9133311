// The order of a source's documents in one pass over it: as stored, shuffled, or shuffled in blocks
// for storage that hates random reads. Every place is computed on its own; there are no tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace brimful {

enum class Shuffle : std::uint8_t { kNone, kFull, kBlock };

std::optional<Shuffle> parse_shuffle(std::string_view name);

struct ShuffleRule {
  Shuffle kind = Shuffle::kNone;
  std::int64_t block = 256;  // kBlock: documents of a block, which stay together; blocks are
  std::int64_t group = 1;    // permuted, and documents among those of `group` consecutive blocks
};

// The document in place `place` of a pass over `count` documents.
std::int64_t shuffled(const ShuffleRule& rule, std::int64_t place, std::int64_t count,
                      std::uint64_t key);

}  // namespace brimful
