// The mix of a corpus.
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/error.hpp"
#include "plan/mix.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

Mix make_mix(std::size_t num_sources,
             std::vector<std::pair<std::int64_t, std::vector<double>>> schedule,
             const std::string& unit, const std::string& when_dry, std::vector<double> max_passes,
             std::int64_t epoch_tokens) {
  const auto weight_unit = parse_weight_unit(unit);
  if (!weight_unit) {
    throw PlanError("unit=\"" + unit + "\" is unknown: choose tokens or documents");
  }
  const auto rule = parse_when_dry(when_dry);
  if (!rule) {
    throw PlanError("when_dry=\"" + when_dry + "\" is unknown: choose repeat, drop, stop or error");
  }
  Mix mix{{}, *weight_unit, *rule, std::move(max_passes), epoch_tokens};
  for (auto& [from, weights] : schedule) mix.schedule.push_back({from, std::move(weights)});
  check(mix, num_sources);
  return mix;
}

}  // namespace

void bind_mix(py::module_& m) {
  py::class_<Mix>(m, "Mix").def(
      py::init(&make_mix), py::arg("num_sources"), py::kw_only(),
      py::arg("schedule") = std::vector<std::pair<std::int64_t, std::vector<double>>>{},
      py::arg("unit") = "tokens", py::arg("when_dry") = "repeat",
      py::arg("max_passes") = std::vector<double>{}, py::arg("epoch_tokens") = 0);
}

}  // namespace brimful
