// brimful.device
#include <memory>

#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "device/api.hpp"
#include "device/device.hpp"

namespace brimful {
namespace py = pybind11;

void bind_device(py::module_& m) {
  m.def("device_available", &device::available, py::call_guard<ReleasedGil>());
  m.def("device_why_not", &device::why_not, py::call_guard<ReleasedGil>());
  m.def("cuda_calls", &device::cuda_calls);
  const py::class_<device::DeviceApi, std::shared_ptr<device::DeviceApi>> api(m, "DeviceApi");
  // The table lives as long as the process.
  m.def(
      "cuda",
      [] { return std::shared_ptr<device::DeviceApi>(std::shared_ptr<void>(), &device::cuda()); },
      py::call_guard<ReleasedGil>());
}

}  // namespace brimful
