// The packers for Python: lengths as an int64 array in, arrays that share the plan's memory out.
#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/error.hpp"
#include "plan/packer.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

template <class T>
using Lengths = py::array_t<T, py::array::c_style>;

template <class T>
std::span<const T> view(const Lengths<T>& lengths) {
  return {lengths.data(), static_cast<std::size_t>(lengths.size())};
}

// A property whose array keeps its plan alive and reads the plan's own memory.
template <class T>
auto column(std::vector<T> Packing::* member) {
  return [member](py::object self) {
    auto& values = self.cast<Packing&>().*member;
    return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data(), self);
  };
}

template <class T>
T known(std::optional<T> parsed, const char* argument, const std::string& name,
        const char* choices) {
  if (parsed) return *parsed;
  throw PlanError(std::string(argument) + "=\"" + name + "\" is unknown: choose " + choices);
}

}  // namespace

void bind_packer(py::module_& m) {
  py::class_<Packing, std::shared_ptr<Packing>>(m, "Packing")
      .def_readonly("capacity", &Packing::capacity)
      .def_property_readonly("bin_offsets", column(&Packing::bin_offsets))
      .def_property_readonly("documents", column(&Packing::documents))
      .def_property_readonly("starts", column(&Packing::starts))
      .def_property_readonly("lengths", column(&Packing::lengths))
      .def_property_readonly("num_bins", &Packing::num_bins)
      .def_readonly("tokens", &Packing::tokens)
      .def_readonly("dropped_documents", &Packing::dropped_documents)
      .def_readonly("dropped_tokens", &Packing::dropped_tokens)
      .def_readonly("truncated_documents", &Packing::truncated_documents)
      .def_readonly("split_documents", &Packing::split_documents)
      .def_readonly("empty_documents", &Packing::empty_documents);
  m.def(
      "pack",
      [](const Lengths<std::int64_t>& lengths, std::int64_t capacity, const std::string& strategy,
         const std::string& overlong, std::int64_t buffer) {
        const Strategy by =
            known(parse_strategy(strategy), "strategy", strategy,
                  "\"concat\", \"first_fit_decreasing\", \"best_fit_decreasing\", \"best_fit\", "
                  "\"streaming\" or \"pad\"");
        const Overlong rule = known(parse_overlong(overlong), "overlong", overlong,
                                    "\"split\", \"truncate\", \"drop\" or \"error\"");
        const py::gil_scoped_release unlocked;
        return std::make_shared<Packing>(pack(view(lengths), capacity, {by, rule, buffer}));
      },
      py::arg("lengths").noconvert(), py::arg("capacity"), py::arg("strategy"), py::arg("overlong"),
      py::arg("buffer"));
  m.def(
      "lower_bound_bins",
      [](const Lengths<std::int32_t>& lengths, std::int64_t capacity) {
        const py::gil_scoped_release unlocked;
        return lower_bound_bins(view(lengths), capacity);
      },
      py::arg("lengths").noconvert(), py::arg("capacity"));
}

}  // namespace brimful
