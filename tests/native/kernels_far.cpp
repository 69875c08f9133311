// Kernels address the ends of the largest batches correctly. The memory is reserved and not filled,
// so only the pages that are touched exist, and of a grid only its outermost blocks are run.
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "device/host_kernels.hpp"
#include "device/kernels.hpp"

namespace {

using namespace brimful::device;

constexpr std::int64_t kMost = 2'147'483'647;

int failures = 0;

void expect(const char* what, std::int64_t found, std::int64_t expected) {
  if (found == expected) return;
  std::printf("%s is %lld, expected %lld\n", what, static_cast<long long>(found),
              static_cast<long long>(expected));
  ++failures;
}

// Zero-filled memory for `count` values.
template <class T>
T* reserve(std::int64_t count) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(count) * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return static_cast<T*>(memory);
}

template <class Kernel>
void run_last_blocks(const Kernel& kernel, std::int64_t count) {
  const std::int64_t blocks = kernel.grid().blocks;
  for (std::int64_t block = blocks - count; block < blocks; ++block) {
    run_block_on_host(kernel, block, TurnOrder::kForward, 0xA5);
  }
}

// Two documents, the second of the last 1000 slots; `size` ranks share `total` slots.
void expand_far(std::int64_t total, std::int32_t size, bool per_document) {
  const std::int64_t begin = total - 1000;
  const std::int32_t cu_seqlens[] = {0, static_cast<std::int32_t>(begin),
                                     static_cast<std::int32_t>(total)};
  const std::int32_t lengths[] = {cu_seqlens[1], 1000};
  const std::int32_t ids[] = {0, 1};
  auto* tokens = reserve<std::uint16_t>(total);
  tokens[total - 1] = 9;
  auto* bits = reserve<std::uint32_t>(total / 32 + 1);
  bits[(total - 1) / 32] = ~0U;
  Parcel parcel;
  parcel.segments = 2;
  parcel.total = parcel.row = total;
  parcel.cu_seqlens = cu_seqlens;
  parcel.lengths = lengths;
  parcel.document_ids = ids;
  parcel.label_bits = bits;
  parcel.tokens = reinterpret_cast<const std::byte*>(tokens);
  const std::int64_t slots = total / size;
  Expanded out;
  out.input_ids = reserve<std::int64_t>(slots);
  out.labels = reserve<std::int64_t>(slots);
  out.position_ids = reserve<std::int64_t>(slots);
  out.segment_begin = reserve<std::int32_t>(slots);
  out.segment_end = reserve<std::int32_t>(slots);
  // Rank 0 has the last slot of whatever is shared out.
  run_last_blocks(make_expand(parcel, {size, 0, per_document}, out), 3);
  expect("last input id", out.input_ids[slots - 1], 9);
  expect("last label", out.labels[slots - 1], 9);
  expect("last position", out.position_ids[slots - 1], 999);
  expect("begin of the last segment", out.segment_begin[slots - 1], begin);
  expect("end of the last segment", out.segment_end[slots - 1], total);
}

// One document and a window of one block: every row of blocks holds itself and the one before. The
// lists have more than 2^32 entries.
void block_mask_far() {
  constexpr std::int64_t kBlocks = 1 << 17;
  const std::int32_t cu_seqlens[] = {0, kBlocks * 128};
  BlockMaskProblem problem;
  problem.cu_seqlens = cu_seqlens;
  problem.segments = 1;
  problem.length = kBlocks * 128;
  problem.window = 128;
  const auto lists = [] {
    return BlockLists{reserve<std::int32_t>(kBlocks), reserve<std::int32_t>(kBlocks * kBlocks),
                      reserve<std::int32_t>(kBlocks), reserve<std::int32_t>(kBlocks * kBlocks)};
  };
  const BlockLists kv = lists();
  const BlockLists q = lists();
  const BlockMaskKernel kernel = make_block_mask(problem, kv, q, {});
  run_block_on_host(kernel, kBlocks - 1, TurnOrder::kForward, 0xA5);  // the last row
  run_last_blocks(kernel, 2);
  expect("blocks of the last row", kv.num_blocks[kBlocks - 1], 2);
  expect("its first", kv.indices[kBlocks * (kBlocks - 1)], kBlocks - 2);
  expect("its second", kv.indices[kBlocks * (kBlocks - 1) + 1], kBlocks - 1);
  expect("blocks of the last column", q.num_blocks[kBlocks - 1], 1);
  expect("blocks of the column before", q.num_blocks[kBlocks - 2], 2);
  expect("its second", q.indices[kBlocks * (kBlocks - 2) + 1], kBlocks - 1);
}

// More slots than int32 counts, the last of which holds a token.
void move_far() {
  constexpr std::int64_t kSlots = (std::int64_t{1} << 31) + 700;
  constexpr std::int64_t kBytes = 6;
  auto* token_of_slot = reserve<std::int32_t>(kSlots);
  token_of_slot[kSlots - 1] = static_cast<std::int32_t>(kMost - 1);
  ItemMove move;
  move.token_of_slot = token_of_slot;
  move.slots = kSlots;
  move.item_bytes = kBytes;
  move.to_rows = true;
  move.rows = reserve<std::byte>(kSlots * kBytes);
  move.tokens = reserve<std::byte>(kMost * kBytes);
  move.tokens[kMost * kBytes - 1] = std::byte{5};
  run_last_blocks(make_move(move), 1);
  expect("last byte of the rows", std::to_integer<int>(move.rows[kSlots * kBytes - 1]), 5);
}

}  // namespace

int main() {
  expand_far(kMost, 1, false);
  expand_far(kMost - 7, 4, true);  // documents of multiples of 8
  expand_far(kMost - 7, 4, false);
  block_mask_far();
  move_far();
  return failures == 0 ? 0 : 1;
}
