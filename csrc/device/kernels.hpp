// The kernels: made and checked by functions that need no device, launched on a stream where there
// is one, or run on the host by the same code (host_kernels.hpp).
#pragma once

#include <cstdint>

#include "device/block_mask_rows.hpp"
#include "device/expand.hpp"
#include "device/unpad_rows.hpp"

namespace brimful::device {

// Arguments and grid of a launch. Throw PlanError for what a kernel cannot do; nothing in the
// memory that is pointed to is looked at, for it may be a device's.
ExpandKernel make_expand(const Parcel& parcel, const ContextParallel& cp, const Expanded& out);
BlockMaskKernel make_block_mask(const BlockMaskProblem& problem, const BlockLists& kv,
                                const BlockLists& q, const QueryBounds& bounds);
MoveKernel make_move(const ItemMove& move);

// A cudaStream_t and the number of the device that it belongs to.
struct DeviceStream {
  int device = 0;
  void* handle = nullptr;
};

// Enqueue the kernel and return at once; an empty grid enqueues nothing. The calling thread's
// device is afterwards what it was. Throw DeviceError where the launch fails, and in a build
// without CUDA.
void launch(const ExpandKernel& kernel, DeviceStream stream);
void launch(const BlockMaskKernel& kernel, DeviceStream stream);
void launch(const MoveKernel& kernel, DeviceStream stream);

}  // namespace brimful::device
