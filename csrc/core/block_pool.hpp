// Blocks of memory for arrays of tens of thousands of numbers, which whole windows are planned in.
// Any thread may plan one, and malloc keeps what a thread has freed for that thread: sixteen
// threads in turn would hold the memory of sixteen plans. These blocks go back to all, a few of
// them, and the rest to the system.
//
// Threads: from any thread; nobody ever waits, so a forked child finds nothing locked for good.
#pragma once

#include <cstddef>

namespace brimful {

// Whether memory of this size comes as such a block.
bool is_pooled(std::size_t bytes);
// A block of so many bytes, not cleared, at a page's boundary. Throws std::bad_alloc.
void* take_block(std::size_t bytes);
// `bytes` as it was taken with.
void give_block(void* memory, std::size_t bytes) noexcept;

}  // namespace brimful
