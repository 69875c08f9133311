// Launches kernels. One function that the device runs serves them all: the phases of its argument,
// with barriers between.
#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "core/error.hpp"
#include "device/kernels.hpp"

namespace brimful::device {
namespace {

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) run_kernel(const Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  for (int phase = 0; phase < kernel.phases(); ++phase) {
    if (phase > 0) __syncthreads();
    kernel.run(phase, blockIdx.x, static_cast<int>(threadIdx.x), shared);
  }
}

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // It is thrown, so it must not surface in a later call's check.
  throw DeviceError(std::string("the device did not ") + what + ": " + cudaGetErrorName(status) +
                    " (" + std::to_string(static_cast<int>(status)) + ", " +
                    cudaGetErrorString(status) + ")");
}

// Makes a device the calling thread's for as long as it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "tell which one is current");
    if (device == before_) return;
    check(cudaSetDevice(device), "become the current one");
    changed_ = true;
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

template <class Kernel>
void launch_any(const Kernel& kernel, DeviceStream stream) {
  const Grid grid = kernel.grid();
  if (grid.blocks == 0) return;
  const CurrentDevice current(stream.device);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.stream = static_cast<cudaStream_t>(stream.handle);
  check(cudaLaunchKernelEx(&config, run_kernel<Kernel>, kernel), "take a kernel");
}

}  // namespace

void launch(const ExpandKernel& kernel, DeviceStream stream) { launch_any(kernel, stream); }
void launch(const BlockMaskKernel& kernel, DeviceStream stream) { launch_any(kernel, stream); }
void launch(const MoveKernel& kernel, DeviceStream stream) { launch_any(kernel, stream); }

}  // namespace brimful::device
