// Sets of steps, and steps of a run by their numbers.
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "bindings/signals.hpp"
#include "plan/step_set.hpp"
#include "plan/steps.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

StepSet step_set(const std::vector<Range>& ranges) {
  std::vector<StepRange> native;
  native.reserve(ranges.size());
  for (const auto& [begin, end] : ranges) native.push_back({begin, end});
  return StepSet(std::move(native));
}

std::vector<Range> ranges(const StepSet& set) {
  std::vector<Range> found;
  found.reserve(set.ranges().size());
  for (const StepRange& range : set.ranges()) found.emplace_back(range.begin, range.end);
  return found;
}

std::pair<std::int64_t, std::map<std::string, py::array>> pieces(Steps& steps, std::int64_t step) {
  StepPieces found;
  {
    const ReleasedGil nogil;
    found = steps.pieces(step);
  }
  std::map<std::string, py::array> arrays;
  arrays["documents"] = to_array(std::move(found.documents));
  arrays["starts"] = to_array(std::move(found.starts));
  arrays["lengths"] = to_array(std::move(found.lengths));
  arrays["sources"] = to_array(std::move(found.sources));
  arrays["rank"] = to_array(std::move(found.ranks));
  arrays["micro_batch"] = to_array(std::move(found.micro_batches));
  arrays["row"] = to_array(std::move(found.rows));
  return {found.epoch, std::move(arrays)};
}

}  // namespace

void bind_steps(py::module_& m) {
  py::class_<StepSet>(m, "StepSet")
      .def(py::init(&step_set), py::arg("ranges"))
      .def_property_readonly("ranges", &ranges)
      .def("contains", &StepSet::contains, py::arg("step"))
      .def("count", &StepSet::count, py::arg("begin"), py::arg("end"))
      .def("from_step", &StepSet::from, py::arg("step"));

  const py::call_guard<ReleasedGil> nogil;
  py::class_<Steps, std::shared_ptr<Steps>>(m, "Steps")
      .def(py::init([](std::shared_ptr<Plan> plan, Geometry geometry, Cursor origin,
                       std::int64_t number) {
             return std::make_shared<Steps>(std::move(plan), geometry, StepOrigin{number, origin},
                                            raise_pending_signals);
           }),
           py::arg("plan"), py::arg("geometry"), py::arg("origin"), py::arg("number"), nogil)
      .def_property_readonly("origin", [](const Steps& s) { return s.origin().cursor; })
      .def_property_readonly("number", [](const Steps& s) { return s.origin().number; })
      .def("before", &Steps::before, py::arg("epoch"), nogil)
      .def("known_before", &Steps::known_before, py::arg("epoch"), nogil)
      .def("learn_before", &Steps::learn_before, py::arg("epoch"), py::arg("steps"), nogil)
      .def("learn_count", &Steps::learn_count, py::arg("epoch"), py::arg("steps"), nogil)
      .def("begin", &Steps::begin, py::arg("step"), nogil)
      .def("pieces", &pieces, py::arg("step"));

  m.def(
      "count_batches",
      [](const Plan& plan, const Geometry& geometry, const Cursor& cursor, const StepSet& skip,
         std::int64_t steps_before) {
        return count_batches(plan, geometry, cursor, skip, steps_before, raise_pending_signals);
      },
      py::arg("plan"), py::arg("geometry"), py::arg("cursor"), py::arg("skip"),
      py::arg("steps_before"), nogil);
}

}  // namespace brimful
