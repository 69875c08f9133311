// The device layer of a build without CUDA.
#include "device/device.hpp"

namespace brimful::device {

bool available() { return false; }

std::string why_not() {
  return "this build of brimful has no CUDA backend (nvcc was not found when it was built); batches "
         "are made on the CPU. Build from source on a machine with nvcc to get it.";
}

}  // namespace brimful::device
