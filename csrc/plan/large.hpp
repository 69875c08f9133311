// Memory of many pages. A million pieces take 20 MB, and the kernel takes longer to hand out their
// 4 KiB pages, one at each first touch, than the packer to plan them: so ask for huge pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brimful {

template <class T>
void reserve_large(std::vector<T>& values, std::size_t size) {
  constexpr std::uintptr_t kHugePage = 1 << 21;
  values.reserve(size);
  const auto begin = reinterpret_cast<std::uintptr_t>(values.data());
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = (begin + size * sizeof(T)) / kHugePage * kHugePage;
  // A hint: where the kernel declines it, pages stay small.
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace brimful
