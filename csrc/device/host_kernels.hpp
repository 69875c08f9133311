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

// Shared memory holds `garbage` in every byte when a block begins.
template <class Kernel>
void run_on_host(const Kernel& kernel, TurnOrder order, int garbage = 0xA5) {
  static_assert(std::is_trivially_default_constructible_v<typename Kernel::Shared>,
                "shared memory is not initialized");
  const Grid grid = kernel.grid();
  const bool forward = order == TurnOrder::kForward;
  for (std::int64_t b = 0; b < grid.blocks; ++b) {
    const std::int64_t block = forward ? b : grid.blocks - 1 - b;
    typename Kernel::Shared shared;
    std::memset(&shared, garbage, sizeof shared);
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      for (int t = 0; t < grid.threads; ++t) {
        kernel.run(phase, block, forward ? t : grid.threads - 1 - t, shared);
      }
    }
  }
}

}  // namespace brimful::device
