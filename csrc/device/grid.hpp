// A kernel here is a struct passed by value: its arguments, the shape of its grid, and what a
// thread of a block does in each phase. A barrier of the block stands between phases, and only
// there, so that a loop on the host runs any kernel as the device does (host_kernels.cpp).
//
//   struct Kernel {
//     struct Shared { ... };        // what threads of a block share; holds anything at first
//     Grid grid() const;            // no blocks: nothing to launch
//     BRIMFUL_HD int phases() const;
//     BRIMFUL_HD void run(int phase, std::int64_t block, int thread, Shared& shared) const;
//   };
#pragma once

#include <cstdint>

namespace brimful::device {

struct Grid {
  std::int64_t blocks = 0;  // at most kMostBlocks, which the kernel's maker checks
  int threads = 0;          // of a block
};

inline constexpr std::int64_t kMostBlocks = 2'147'483'647;  // of one dimension of a CUDA grid

}  // namespace brimful::device
