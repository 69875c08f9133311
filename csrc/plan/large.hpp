// Memory of many pages. A million pieces take 20 MB, and the kernel takes longer to hand out their
// 4 KiB pages, one at each first touch, than the packer to plan them: so ask for huge pages, and
// touch nothing but to write what it is for.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "core/block_pool.hpp"

namespace brimful {

template <class T>
bool is_pooled_array(std::size_t size) {
  return size <= SIZE_MAX / sizeof(T) && is_pooled(size * sizeof(T));
}

// Leaves the numbers of a vector unset until they are written. Memory for windows is pooled.
template <class T>
struct Unset : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Unset<U>;
  };
  T* allocate(std::size_t size) {
    if (!is_pooled_array<T>(size)) return std::allocator<T>::allocate(size);
    return static_cast<T*>(take_block(size * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t size) noexcept {
    if (!is_pooled_array<T>(size)) return std::allocator<T>::deallocate(memory, size);
    give_block(memory, size * sizeof(T));
  }
  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

// The same, of memory that is zero already, so that numbers are 0 where none has stood before. That
// of more than windows is fresh from the kernel, and zeros that nobody touches cost nothing.
template <class T>
struct Zeroed : Unset<T> {
  template <class U>
  struct rebind {
    using other = Zeroed<U>;
  };
  T* allocate(std::size_t size) {
    if (is_pooled_array<T>(size)) {
      return static_cast<T*>(std::memset(take_block(size * sizeof(T)), 0, size * sizeof(T)));
    }
    void* memory = size <= SIZE_MAX / sizeof(T) ? std::calloc(size, sizeof(T)) : nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t size) noexcept {
    if (!is_pooled_array<T>(size)) return std::free(memory);
    give_block(memory, size * sizeof(T));
  }
};

template <class T>
using UnsetVector = std::vector<T, Unset<T>>;
template <class T>
using ZeroVector = std::vector<T, Zeroed<T>>;

// Says how much memory a plan takes, and its next one likely too. glibc gives freed memory back to
// the kernel beyond twice the largest single block that was freed (up to 32 MiB), and each plan
// would fetch its pages anew; a block that is freed untouched teaches it to keep them.
inline void expect_memory(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);  // volatile: else the compiler leaves both calls out
  std::free(block);
}

template <class Vector>
void reserve_large(Vector& values, std::size_t size) {
  constexpr std::uintptr_t kHugePage = 1 << 21;
  values.reserve(size);
  const auto begin = reinterpret_cast<std::uintptr_t>(values.data());
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last =
      (begin + size * sizeof(typename Vector::value_type)) / kHugePage * kHugePage;
  // A hint: where the kernel declines it, pages stay small.
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace brimful
