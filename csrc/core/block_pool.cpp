#include "core/block_pool.hpp"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <mutex>
#include <new>

namespace brimful {
namespace {

constexpr std::size_t kLeast = std::size_t{64} << 10;
constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kMostKept = std::size_t{4} << 20;  // bytes of free blocks
constexpr std::size_t kMostOfASize = 16;

constexpr std::size_t kSizes = std::countr_zero(kMost) - std::countr_zero(kLeast) + 1;

// Free blocks of one size, a power of two.
struct FreeBlocks {
  std::array<void*, kMostOfASize> blocks{};
  std::size_t count = 0;
};

std::mutex mutex;  // guards what follows
std::array<FreeBlocks, kSizes> free_blocks;
std::size_t kept = 0;

FreeBlocks& of_size(std::size_t size) {
  return free_blocks[static_cast<std::size_t>(std::countr_zero(size) - std::countr_zero(kLeast))];
}

}  // namespace

bool is_pooled(std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  constexpr bool kPools = false;  // it watches the ends of what malloc gives
#else
  constexpr bool kPools = true;
#endif
  return kPools && bytes >= kLeast && bytes <= kMost;
}

void* take_block(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(bytes);
  if (const std::unique_lock lock(mutex, std::try_to_lock); lock) {
    FreeBlocks& free = of_size(size);
    if (free.count > 0) {
      kept -= size;
      return free.blocks[--free.count];
    }
  }
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void give_block(void* memory, std::size_t bytes) noexcept {
  const std::size_t size = std::bit_ceil(bytes);
  if (const std::unique_lock lock(mutex, std::try_to_lock); lock) {
    FreeBlocks& free = of_size(size);
    if (free.count < kMostOfASize && kept + size <= kMostKept) {
      kept += size;
      free.blocks[free.count++] = memory;
      return;
    }
  }
  munmap(memory, size);
}

}  // namespace brimful
