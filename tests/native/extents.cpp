// An index of more than 2^31 entries is addressed correctly at its end. The memory is reserved and
// not filled, so only the pages that are touched exist.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "corpus/corpus.hpp"

namespace {

using namespace brimful;

constexpr std::int64_t kEntries = (std::int64_t{1} << 31) + 5;

// Zero-filled memory at an address that is odd for every type.
std::byte* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes + 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return static_cast<std::byte*>(memory) + 1;
}

template <class T>
void put(std::byte* array, std::int64_t i, T value) {
  std::memcpy(array + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

int failures = 0;

void expect(const char* what, const Extents& extents, std::int64_t begin, std::int64_t length) {
  const Extent last = extents[kEntries - 1];
  std::int64_t listed = -1;
  extents.lengths(kEntries - 1, 1, &listed);
  if (extents.size() == kEntries && last.begin == begin && last.length == length &&
      listed == length) {
    return;
  }
  std::printf("%s: entry %lld is [%lld, +%lld], expected [%lld, +%lld]\n", what,
              static_cast<long long>(kEntries - 1), static_cast<long long>(last.begin),
              static_cast<long long>(last.length), static_cast<long long>(begin),
              static_cast<long long>(length));
  ++failures;
}

}  // namespace

int main() {
  constexpr std::int64_t kBegin = std::int64_t{3} << 40;
  std::byte* offsets = reserve((kEntries + 1) * 8);
  put<std::int64_t>(offsets, kEntries - 1, kBegin);
  put<std::int64_t>(offsets, kEntries, kBegin + 70'000);
  expect("offsets64", Extents::offsets64(kEntries, offsets), kBegin, 70'000);

  std::byte* small = reserve((kEntries + 1) * 4);
  put<std::int32_t>(small, kEntries - 1, 5);
  put<std::int32_t>(small, kEntries, 9);
  expect("offsets32", Extents::offsets32(kEntries, small), 5, 4);

  std::byte* lengths = reserve(kEntries * 4);
  std::byte* pointers = reserve(kEntries * 8);
  put<std::int32_t>(lengths, kEntries - 1, 65'537);
  put<std::int64_t>(pointers, kEntries - 1, 2 * kBegin);
  expect("megatron", Extents::megatron(kEntries, lengths, pointers, 2), kBegin, 65'537);

  std::byte* documents = reserve((kEntries + 1) * 8);
  put<std::int64_t>(documents, kEntries - 1, kEntries - 1);
  put<std::int64_t>(documents, kEntries, kEntries);
  expect("megatron_documents",
         Extents::megatron_documents(kEntries, documents, kEntries, pointers, 2, kBegin + 11),
         kBegin, 11);

  expect("uniform", Extents::uniform(kEntries, 4096), (kEntries - 1) * 4096, 4096);
  return failures;
}
