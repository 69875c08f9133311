// A ring that is supplied with blocks: each serves one batch, nobody writes to it once that is
// handed over, and few are there at a time. Blocks are freed when they are the supplier's again,
// so that a sanitizer sees a thread that still writes.
#include <array>
#include <map>
#include <memory>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

constexpr std::size_t kWords = 512;
constexpr std::int64_t kBatches = 1000;

struct alignas(64) Block {
  std::array<std::uint64_t, kWords> words;
};

void run(int num_workers, std::int64_t depth) {
  const std::string what =
      std::to_string(num_workers) + " workers, depth " + std::to_string(depth) + ": ";
  std::map<const std::byte*, std::unique_ptr<Block>> filling;
  auto producer = std::make_shared<NumberedProducer>(2 * kBatches, kWords);
  Prefetcher prefetcher(
      producer, {.num_workers = num_workers, .depth = depth, .memory = Ring::Memory::kSupplied});
  const std::int64_t most = num_workers == 0 ? 2 : depth + 1;
  const auto supply = [&] {
    for (std::int64_t wanted = prefetcher.blocks_wanted(); wanted > 0; --wanted) {
      auto block = std::make_unique<Block>();
      block->words.fill(kPoison);
      auto* bytes = reinterpret_cast<std::byte*>(block.get());
      filling[bytes] = std::move(block);
      prefetcher.supply(bytes);
    }
    check(static_cast<std::int64_t>(filling.size()) == most,
          what + std::to_string(filling.size()) + " blocks are there");
  };
  for (std::int64_t k = 0; k < kBatches; ++k) {
    supply();
    auto batch = prefetcher.next();
    check(batch.has_value(), what + "the stream ends early");
    std::byte* slot = batch->slot.get();
    check(filling.contains(slot), what + "a batch lies in no block, or in one a second time");
    batch.reset();
    check(producer->holds(slot, static_cast<std::uint64_t>(k)), what + "a batch holds another");
    producer->poison(slot);
    filling.erase(slot);
  }
  check(prefetcher.counters().slots <= most + 1, what + "the ring grows");
  supply();
  prefetcher.close();  // in mid-stream: then all blocks are the supplier's
  check(prefetcher.blocks_wanted() == 0, what + "a closed ring wants blocks");
}

}  // namespace

int main() {
  end_if_hung();
  for (const int num_workers : {0, 1, 4}) {
    for (const std::int64_t depth : {1, 3}) run(num_workers, depth);
  }
  Prefetcher owner(std::make_shared<NumberedProducer>(1, kWords), {.num_workers = 0});
  check(owner.blocks_wanted() == 0, "a ring with memory of its own wants none");
  message_of<Error>([&] { owner.supply(nullptr); }, "a ring with memory of its own was supplied");
  Prefetcher unsupplied(std::make_shared<NumberedProducer>(1, kWords),
                        {.num_workers = 1, .memory = Ring::Memory::kSupplied});
  message_of<Error>([&] { unsupplied.next(); }, "nothing was supplied");
}
