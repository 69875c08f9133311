// Copies out of token stores, for writers.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "corpus/transfer.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

// A new array of `size` items, filled by fill(data) without the GIL. A count below 0 is for the
// core to refuse.
template <class Fill>
py::array filled(const py::dtype& dtype, std::int64_t size, const Fill& fill) {
  py::array out(dtype, std::max<std::int64_t>(size, 0));
  void* data = out.mutable_data();
  const ReleasedGil nogil;
  fill(data);
  return out;
}

py::array tokens(const TokenStore& store, std::int64_t begin, std::int64_t count) {
  const py::dtype dtype{std::string(type_name(store.type))};
  return filled(dtype, count, [&](void* out) { read_tokens(store, begin, count, out); });
}

py::array_t<std::uint8_t> loss_mask(const TokenStore& store, std::int64_t begin,
                                    std::int64_t count) {
  return filled(py::dtype::of<std::uint8_t>(), count, [&](void* out) {
    read_loss_mask(store, begin, count, static_cast<std::uint8_t*>(out));
  });
}

std::tuple<std::int64_t, py::array_t<std::int64_t>, py::array_t<std::int64_t>> structure(
    const TokenStore& store, std::int64_t first, std::int64_t count) {
  Structure found;
  {
    const ReleasedGil nogil;
    found = read_structure(store, first, count);
  }
  return {found.begin, to_array(std::move(found.sequence_lengths)),
          to_array(std::move(found.sequence_ends))};
}

}  // namespace

void bind_transfer(py::module_& m) {
  m.def("read_tokens", &tokens, py::arg("store"), py::arg("begin"), py::arg("count"));
  m.def("read_loss_mask", &loss_mask, py::arg("store"), py::arg("begin"), py::arg("count"));
  m.def("read_structure", &structure, py::arg("store"), py::arg("first"), py::arg("count"));
}

}  // namespace brimful
