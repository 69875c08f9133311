// Kernels in a build without CUDA: an error that says why there are none.
#include "core/error.hpp"
#include "device/device.hpp"
#include "device/kernels.hpp"

namespace brimful::device {

void launch(const ExpandKernel& /*kernel*/, DeviceStream /*stream*/) {
  throw DeviceError(why_not());
}
void launch(const BlockMaskKernel& /*kernel*/, DeviceStream /*stream*/) {
  throw DeviceError(why_not());
}
void launch(const MoveKernel& /*kernel*/, DeviceStream /*stream*/) { throw DeviceError(why_not()); }

}  // namespace brimful::device
