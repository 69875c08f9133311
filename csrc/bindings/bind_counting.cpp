// Counting for Python, in arrays of [rows, width].
#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "batch/count.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

template <class T>
using Rows = py::array_t<T, py::array::c_style>;

template <class T>
std::span<const T> view(const Rows<T>& values) {
  if (values.ndim() != 2) throw py::value_error("values must have rows and columns");
  return {values.data(), static_cast<std::size_t>(values.size())};
}

template <class T>
void bind_for(py::module_& m) {
  m.def(
      "count_other",
      [](const Rows<T>& values, T number, bool skip_first) {
        const std::span<const T> all = view(values);
        return count_other(all, static_cast<std::size_t>(values.shape(0)), number, skip_first);
      },
      py::arg("values").noconvert(), py::arg("number"), py::kw_only(), py::arg("skip_first"));
  m.def(
      "count_mask",
      [](const Rows<T>& mask) {
        const std::span<const T> all = view(mask);
        MaskCounts counts = count_mask(all, static_cast<std::size_t>(mask.shape(0)));
        return std::pair(to_array(std::move(counts.rows)), counts.binary);
      },
      py::arg("mask").noconvert());
}

}  // namespace

void bind_counting(py::module_& m) {
  bind_for<std::int64_t>(m);
  bind_for<std::int32_t>(m);
  bind_for<std::uint8_t>(m);
}

}  // namespace brimful
