// The device layer of a build without CUDA.
#include "core/error.hpp"
#include "device/api.hpp"
#include "device/device.hpp"

namespace brimful::device {

bool available() { return false; }

std::string why_not() {
  return "This build of brimful has no CUDA backend: nvcc was not found, or was switched off, when "
         "it "
         "was built from source.";
}

DeviceApi& cuda() { throw DeviceError(why_not()); }

std::int64_t cuda_calls() { return 0; }

}  // namespace brimful::device
