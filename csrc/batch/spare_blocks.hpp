// Memory that large results come back to. For results of which only a part is written and the rest
// may hold whatever an earlier result of the same shape held: a fresh block is zeros, and fetching
// its pages from the kernel takes many times longer than what is written there.
//
// Blocks are shared by all threads. A thread that would have to wait, as in a forked child whose
// parent held the lock, takes a fresh block instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace brimful {

// What must agree for one result to take the memory of another.
using SpareShape = std::array<std::int64_t, 3>;

inline constexpr std::size_t kMostSpareBlocks = 8;
inline constexpr std::size_t kMostSpareBytes = std::size_t{64} << 20;

// `size` numbers, which depend on the shape alone: zeros, or as a result of the same shape left
// them. Whoever drops the last reference gives them back; the oldest are freed beyond the limits.
std::shared_ptr<std::int32_t> take_spare_block(const SpareShape& shape, std::size_t size);

}  // namespace brimful
