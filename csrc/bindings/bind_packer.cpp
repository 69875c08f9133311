// The packers for Python: lengths as an int64 array in, arrays that share the plan's memory out.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/pack_arguments.hpp"
#include "bindings/released_gil.hpp"
#include "core/error.hpp"
#include "plan/lower_bound.hpp"
#include "plan/packer.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

// A property whose array keeps its plan alive and reads the plan's own memory.
template <class T, class Allocator>
auto column(std::vector<T, Allocator> Packing::* member) {
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

PackArguments make_arguments(const std::string& strategy, const std::string& overlong,
                             std::int64_t buffer, std::optional<std::int64_t> max_segments,
                             std::int64_t align, std::int64_t min_piece, bool start_token,
                             std::optional<std::uint64_t> seed,
                             std::optional<PackArray<std::int64_t>> groups,
                             std::optional<PackArray<std::int64_t>> resource,
                             std::int64_t resource_capacity, std::optional<std::int64_t> bins,
                             std::int64_t world_size) {
  PackArguments arguments;
  arguments.groups = std::move(groups);
  arguments.resource = std::move(resource);
  PackOptions& options = arguments.options;
  options.strategy = known(parse_strategy(strategy), "strategy", strategy,
                           "\"concat\", \"first_fit_decreasing\", \"best_fit_decreasing\", "
                           "\"best_fit\", \"streaming\", \"balanced\" or \"pad\"");
  options.overlong = known(parse_overlong(overlong), "overlong", overlong,
                           "\"split\", \"truncate\", \"drop\" or \"error\"");
  options.buffer = buffer;
  options.max_segments = max_segments.value_or(PackOptions::kUnlimited);
  options.align = align;
  options.min_piece = min_piece;
  options.start_token = start_token;
  options.seed = seed;
  if (arguments.groups) options.groups = view(*arguments.groups);
  if (arguments.resource) options.resource = view(*arguments.resource);
  options.resource_capacity = resource_capacity;
  options.bins = bins;
  options.world_size = world_size;
  return arguments;
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
  const PackOptions none;  // no constraints
  py::class_<PackArguments>(m, "PackOptions")
      .def(py::init(&make_arguments), py::kw_only(), py::arg("strategy"),
           py::arg("overlong") = "split", py::arg("buffer") = none.buffer,
           py::arg("max_segments") = py::none(), py::arg("align") = none.align,
           py::arg("min_piece") = none.min_piece, py::arg("start_token") = none.start_token,
           py::arg("seed") = py::none(), py::arg("groups") = py::none(),
           py::arg("resource") = py::none(), py::arg("resource_capacity") = none.resource_capacity,
           py::arg("bins") = py::none(), py::arg("world_size") = none.world_size)
      .def_property_readonly("max_segments",
                             [](const PackArguments& a) -> std::optional<std::int64_t> {
                               if (a.options.max_segments == PackOptions::kUnlimited) return {};
                               return a.options.max_segments;
                             })
      .def_property_readonly("align", [](const PackArguments& a) { return a.options.align; })
      .def_property_readonly("min_piece",
                             [](const PackArguments& a) { return a.options.min_piece; });
  m.def(
      "pack",
      [](const PackArray<std::int64_t>& lengths, std::int64_t capacity,
         const PackArguments& arguments) {
        const ReleasedGil unlocked;
        return std::make_shared<Packing>(pack(view(lengths), capacity, arguments.options));
      },
      py::arg("lengths").noconvert(), py::arg("capacity"), py::arg("options"));
  m.def(
      "lower_bound_bins",
      [](const Packing& packing, const PackArguments& arguments) {
        const ReleasedGil unlocked;
        return lower_bound_bins(packing, arguments.options);
      },
      py::arg("packing"), py::arg("options"));
}

}  // namespace brimful
