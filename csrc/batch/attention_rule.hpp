// Which keys a query sees, besides being in its own segment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace brimful {

inline constexpr std::int64_t kNoWindow = std::numeric_limits<std::int64_t>::max();

// Keys of the segment's prefix are seen by all of its queries. Of the others a query sees those up
// to itself (all, unless causal) that are nearer than the window.
struct AttentionRule {
  bool causal = true;
  std::int64_t window = kNoWindow;               // q - k < window
  std::span<const std::int64_t> prefix_lengths;  // [segments] keys, or empty: none has a prefix

  // Where the prefix of segment i ends; one longer than its segment covers it.
  std::int64_t prefix_end(std::size_t i, std::int64_t begin, std::int64_t end) const {
    return prefix_lengths.empty() ? begin : std::min(end - begin, prefix_lengths[i]) + begin;
  }
};

// Throws PlanError for a window below 1, and for prefixes below 0 or not one a segment.
void check_rule(const AttentionRule& rule, std::size_t segments);

}  // namespace brimful
