// Runs kernels on the host, for tests: every block, every thread of it and every phase, by the code
// that a device runs. Blocks and threads take turns in the order asked for: one that reads what
// another writes in the same phase gives another result in another order.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/grid.hpp"
#include "device/kernels.hpp"

namespace brimful::device {

enum class TurnOrder : std::uint8_t { kForward, kBackward };

// One block. Shared memory holds `garbage` in every byte when it begins.
template <class Kernel>
void run_block_on_host(const Kernel& kernel, std::int64_t block, TurnOrder order, int garbage) {
  static_assert(std::is_trivially_default_constructible_v<typename Kernel::Shared>,
                "shared memory is not initialized");
  const int threads = kernel.grid().threads;
  typename Kernel::Shared shared;
  std::memset(&shared, garbage, sizeof shared);
  for (int phase = 0; phase < kernel.phases(); ++phase) {
    for (int t = 0; t < threads; ++t) {
      kernel.run(phase, block, order == TurnOrder::kForward ? t : threads - 1 - t, shared);
    }
  }
}

template <class Kernel>
void run_on_host(const Kernel& kernel, TurnOrder order, int garbage) {
  const std::int64_t blocks = kernel.grid().blocks;
  for (std::int64_t b = 0; b < blocks; ++b) {
    run_block_on_host(kernel, order == TurnOrder::kForward ? b : blocks - 1 - b, order, garbage);
  }
}

}  // namespace brimful::device
