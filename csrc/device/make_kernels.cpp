#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "device/kernels.hpp"

namespace brimful::device {
namespace {

constexpr std::int64_t kMostSlots = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const std::string& what) { throw PlanError(what); }

void check_slots(std::int64_t slots) {
  if (slots >= 0 && slots <= kMostSlots) return;
  refuse("a batch for a device has " + std::to_string(slots) +
         " slots; cu_seqlens counts from 0 to " + std::to_string(kMostSlots));
}

// A segment holds every slot, so that there must be one where there are slots.
void check_segments(std::int64_t segments, std::int64_t slots) {
  if (segments >= (slots > 0 ? 1 : 0) && segments <= kMostSlots) return;
  refuse("a batch of " + std::to_string(slots) + " slots has " + std::to_string(segments) +
         " segments; from 1 to " + std::to_string(kMostSlots) + " are expected");
}

void check_context_parallel(const Parcel& parcel, const ContextParallel& cp) {
  if (cp.size < 1 || cp.rank < 0 || cp.rank >= cp.size) {
    refuse("context parallelism has rank " + std::to_string(cp.rank) + " of " +
           std::to_string(cp.size) + "; ranks count from 0 to the size minus 1");
  }
  // Segments lie in device memory; they are multiples where what they add up to is one.
  const std::int64_t parts = 2 * static_cast<std::int64_t>(cp.size);
  const std::int64_t divided = cp.per_document ? parcel.total : parcel.row;
  if (cp.size > 1 && divided % parts != 0) {
    refuse(std::string(cp.per_document ? "the total" : "a row") + " of " + std::to_string(divided) +
           " slots is no multiple of " + std::to_string(parts) + ", twice the " +
           std::to_string(cp.size) + " ranks of context parallelism");
  }
}

void check_grid(const Grid& grid) {
  if (grid.blocks > kMostBlocks) {
    refuse("a kernel would have " + std::to_string(grid.blocks) + " blocks of threads; " +
           std::to_string(kMostBlocks) + " are the most");
  }
}

}  // namespace

ExpandKernel make_expand(const Parcel& parcel, const ContextParallel& cp, const Expanded& out) {
  check_slots(parcel.total);
  check_segments(parcel.segments, parcel.total);
  const std::int32_t bytes = parcel.token_bytes;
  if (bytes != 2 && bytes != 4 && bytes != 8) {
    refuse("tokens for a device have " + std::to_string(bytes) + " bytes; 2, 4 or 8 are expected");
  }
  if (parcel.total > 0 && (parcel.row < 1 || parcel.total % parcel.row != 0)) {
    refuse("a row of " + std::to_string(parcel.row) + " slots does not divide the total of " +
           std::to_string(parcel.total));
  }
  check_context_parallel(parcel, cp);
  const ExpandKernel kernel{parcel, cp, out, parcel.total / cp.size,
                            rounds_to_find(parcel.segments, ExpandKernel::kThreads)};
  check_grid(kernel.grid());
  return kernel;
}

BlockMaskKernel make_block_mask(const BlockMaskProblem& problem, const BlockLists& kv,
                                const BlockLists& q, const QueryBounds& bounds) {
  if (problem.rows < 0 || problem.length < 0 ||
      (problem.length > 0 && problem.rows > kMostSlots / problem.length)) {
    refuse("a block mask covers " + std::to_string(problem.rows) + " rows of " +
           std::to_string(problem.length) + " slots; cu_seqlens counts from 0 to " +
           std::to_string(kMostSlots));
  }
  check_segments(problem.segments, problem.rows * problem.length);
  for (const std::int64_t size : {problem.block_q, problem.block_kv}) {
    if (size < 1 || size > kMostSlots) {
      refuse("a block of a block mask has " + std::to_string(size) + " slots; from 1 to " +
             std::to_string(kMostSlots) + " are expected");
    }
  }
  if (problem.window < 0) {
    refuse("window is " + std::to_string(problem.window) + "; it counts keys");
  }
  const BlockMaskKernel kernel{problem, kv, q, bounds,
                               rounds_to_find(problem.segments, BlockMaskKernel::kThreads)};
  check_grid(kernel.grid());
  return kernel;
}

MoveKernel make_move(const ItemMove& move) {
  if (move.slots < 0 || move.item_bytes < 0) refuse("rows to pad or unpad have a negative size");
  // The lowest set bit of them all divides each.
  const std::uint64_t sizes = static_cast<std::uint64_t>(move.item_bytes) |
                              reinterpret_cast<std::uintptr_t>(move.rows) |
                              reinterpret_cast<std::uintptr_t>(move.tokens) | sizeof(Word16);
  const MoveKernel kernel{move, static_cast<int>(sizes & (~sizes + 1))};
  check_grid(kernel.grid());
  return kernel;
}

}  // namespace brimful::device
