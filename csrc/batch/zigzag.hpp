// Context parallelism: the ranks of a group share every batch, and this says which slots of it one
// of them holds. A unit of slots (a segment, a row, or a whole batch) is cut into 2 x size chunks
// of equal length; rank r holds chunk r and chunk 2 x size - 1 - r, in this order, so that all
// ranks have the same work under a causal mask.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace brimful {

enum class ZigzagUnit : std::uint8_t {
  kDocument,  // every segment is cut by itself
  kSequence,  // every row is; under "varlen" the batch is one row
};

constexpr std::optional<ZigzagUnit> parse_zigzag_unit(std::string_view name) {
  if (name == "document") return ZigzagUnit::kDocument;
  if (name == "sequence") return ZigzagUnit::kSequence;
  return std::nullopt;
}

struct Zigzag {
  std::int64_t size = 1;  // ranks of the group; 1: nothing is cut
  std::int64_t rank = 0;
  ZigzagUnit unit = ZigzagUnit::kSequence;

  // What the slots of a unit must be a multiple of.
  std::int64_t multiple() const { return size == 1 ? 1 : 2 * size; }
};

// Slots of a segment that lie together in the rank's share.
struct Run {
  std::int64_t from = 0;  // of the segment
  std::int64_t slots = 0;
  std::int64_t to = 0;  // where the first of them goes, in the flattened share
};

// Calls f(run) for what the rank holds of the slots at .. at + slots, which lie in one unit:
// unit_begin .. unit_begin + unit_slots, a multiple of 2 x size.
template <class F>
void each_run(const Zigzag& zigzag, std::int64_t at, std::int64_t slots, std::int64_t unit_begin,
              std::int64_t unit_slots, const F& f) {
  if (zigzag.size == 1) return f(Run{0, slots, at});
  const std::int64_t chunk = unit_slots / (2 * zigzag.size);
  const std::int64_t share_begin = unit_begin / zigzag.size;
  const std::array<std::int64_t, 2> held = {zigzag.rank, 2 * zigzag.size - 1 - zigzag.rank};
  for (std::size_t k = 0; k < held.size(); ++k) {
    const std::int64_t chunk_begin = unit_begin + held[k] * chunk;
    const std::int64_t begin = std::max(at, chunk_begin);
    const std::int64_t end = std::min(at + slots, chunk_begin + chunk);
    if (begin >= end) continue;
    const auto before = static_cast<std::int64_t>(k) * chunk;
    f(Run{begin - at, end - begin, share_begin + before + begin - chunk_begin});
  }
}

}  // namespace brimful
