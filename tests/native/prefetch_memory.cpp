// No memory, at any moment and in any thread: allocation number n fails, for every n that a stream
// makes, once or from then on. What comes out is a right prefix of the stream and std::bad_alloc or
// Error; nothing is terminated, and nobody waits for ever.
#include <new>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

std::atomic<std::int64_t> allocations_left{0};
std::atomic<bool> armed{false};
std::atomic<bool> for_good{false};  // or only once
thread_local bool exempt = false;   // the test itself needs memory

// Memory for `operator new`, or null when it is this allocation's turn to fail.
void* allocate(std::size_t bytes, std::size_t alignment) {
  if (armed && !exempt) {
    const std::int64_t left = allocations_left--;
    if (left == 0 || (left < 0 && for_good)) return nullptr;
  }
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

class Exempt {
 public:
  Exempt() { exempt = true; }
  ~Exempt() { exempt = before_; }
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;

 private:
  const bool before_ = exempt;
};

constexpr std::int64_t kBatches = 7;
constexpr std::size_t kWords = 64;

// As the loader's own: planning and filling need memory.
class HungryProducer : public Producer {
 public:
  std::size_t slot_bytes() const override { return kWords * sizeof(std::uint64_t); }
  std::optional<BatchSpec> claim() override {
    const std::vector<std::int64_t> plan(8, next_);
    if (next_ == kBatches) return std::nullopt;
    BatchSpec spec;
    spec.rows.resize(3);
    spec.after.bin = next_++;
    return spec;
  }
  Filled fill(const BatchSpec& spec, const Lease& lease) const override {
    std::byte* slot = lease.get();
    auto* words = reinterpret_cast<std::uint64_t*>(slot);
    for (std::size_t i = 0; i < kWords; ++i) words[i] = static_cast<std::uint64_t>(spec.after.bin);
    BatchMeta meta;
    meta.cu_seqlens.resize(4);
    meta.num_tokens = spec.after.bin;
    return {meta};
  }

 private:
  std::int64_t next_ = 0;
};

void check_batch(const Delivered& batch, std::int64_t number) {
  const Exempt here;
  const std::string name = "batch " + std::to_string(number);
  check(batch.spec.after.bin == number && batch.meta.num_tokens == number, name + " is another");
  const auto* words = reinterpret_cast<const std::uint64_t*>(batch.slot.get());
  for (std::size_t i = 0; i < kWords; ++i) {
    check(words[i] == static_cast<std::uint64_t>(number), name + " has a foreign word");
  }
}

// Takes what comes and keeps all of it, so that the ring has to grow. Says how many came before the
// end, or before next() had failed three times.
std::int64_t consume(Prefetcher& prefetcher) {
  std::vector<Delivered> kept;
  {
    const Exempt here;
    kept.reserve(kBatches);
  }
  for (int failures = 0; failures < 3;) {
    try {
      std::optional<Delivered> batch = prefetcher.next();
      if (!batch) return static_cast<std::int64_t>(kept.size());
      check_batch(*batch, static_cast<std::int64_t>(kept.size()));
      kept.push_back(std::move(*batch));
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const Error&) {
      ++failures;
    }
  }
  return -1;
}

// One stream whose allocation number n fails. Says whether there was such an allocation.
bool fail_at(std::int64_t n, int workers) {
  allocations_left = n;
  armed = true;
  try {
    auto producer = std::make_shared<HungryProducer>();
    Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 2});
    const std::int64_t delivered = consume(prefetcher);
    armed = false;
    check(delivered == kBatches || delivered < 0, "the stream ends too early, without an error");
    check(delivered == kBatches || allocations_left < 0, "an error without a cause");
  } catch (const std::bad_alloc&) {
  } catch (const Error&) {
  }
  armed = false;
  return allocations_left < 0;
}

}  // namespace

// Not inlined, or the compiler would see memory of `new` go to free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

int main() {
  end_if_hung();
  for (const bool persistent : {false, true}) {
    for_good = persistent;
    for (const int workers : {0, 1, 3}) {
      // Threads meet in another order each time: the same number is another allocation.
      for (int round = 0; round < (workers == 0 ? 1 : 5); ++round) {
        std::int64_t n = 0;
        while (fail_at(n, workers)) ++n;
        check(n > 3 * kBatches, "the stream hardly needs memory: nothing was tried");
      }
    }
  }
}
