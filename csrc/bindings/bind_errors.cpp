// The Python classes of core/error.hpp: BrimfulError is the root; input errors are also
// ValueErrors, the machine's are also RuntimeErrors.
#include "bindings/bindings.hpp"
#include "core/error.hpp"

namespace brimful {
namespace py = pybind11;

void bind_errors(py::module_& m) {
  // py::exception names the class "brimful._core.X"; users know it as brimful.X.
  const auto publish = [](py::handle type, const char* doc) {
    type.attr("__module__") = "brimful";
    type.attr("__doc__") = doc;
  };
  auto root = py::register_exception<Error>(m, "BrimfulError", PyExc_Exception);
  publish(root, "The root of all errors that brimful raises.");
  const py::tuple input = py::make_tuple(root, py::handle(PyExc_ValueError));
  const py::tuple machine = py::make_tuple(root, py::handle(PyExc_RuntimeError));

  publish(py::register_exception<FormatError>(m, "FormatError", input),
          "A file, buffer or token is not what its format promises.");
  publish(py::register_exception<PlanError>(m, "PlanError", input),
          "Lengths or settings that cannot be packed, mixed or planned.");
  publish(py::register_exception<StateError>(m, "StateError", input),
          "A saved state that does not belong to this corpus or these settings.");
  publish(py::register_exception<ReadError>(m, "ReadError", machine),
          "A file changed, shrank or could not be read while it was in use.");
  publish(py::register_exception<DeviceError>(m, "DeviceError", machine),
          "The accelerator or its driver failed.");
  publish(py::register_exception<RingExhausted>(m, "RingExhausted", machine),
          "The consumer keeps every slot of the ring and max_slots forbids another.");
  publish(py::register_exception<LoaderTimeout>(m, "LoaderTimeout", machine),
          "No batch arrived within the timeout.");
}

}  // namespace brimful
