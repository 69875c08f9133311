// The device layer of a build with CUDA. The runtime is linked statically and loads the driver at
// the first call made here, so that importing the module needs no driver and touches no device.
#include <cuda_runtime_api.h>

#include <string>

#include "device/device.hpp"

namespace brimful::device {
namespace {

std::string version_name(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

bool available() { return why_not().empty(); }

std::string why_not() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();  // The answer is returned, so it must not surface in a later call's check.
  if (status == cudaSuccess && count > 0) return "";
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    return "The NVIDIA driver shows no device to this process: there is no GPU, or "
           "CUDA_VISIBLE_DEVICES hides it.";
  }
  if (status == cudaErrorInsufficientDriver) {
    // The runtime gives this code for both, and cannot tell them apart without a driver to ask.
    return "The NVIDIA driver is not installed, or is older than the CUDA " +
           version_name(CUDART_VERSION) + " that brimful was built with and needs an update.";
  }
  return std::string("The NVIDIA driver did not start: ") + cudaGetErrorName(status) + " (" +
         std::to_string(static_cast<int>(status)) + ", " + cudaGetErrorString(status) + ").";
}

}  // namespace brimful::device
