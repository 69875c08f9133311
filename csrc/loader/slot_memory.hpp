// Where the ring's own slots lie. Any thread may ask; memory may be released long after the ring.
#pragma once

#include <cstddef>

namespace brimful {

class SlotMemory {
 public:
  virtual ~SlotMemory() = default;
  // At a 64-byte boundary at least.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) noexcept = 0;
};

}  // namespace brimful
