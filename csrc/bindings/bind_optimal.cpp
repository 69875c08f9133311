// The native half of strategy "optimal" for Python: arrays in, arrays out.
#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/pack_arguments.hpp"
#include "bindings/released_gil.hpp"
#include "plan/by_patterns.hpp"
#include "plan/pricing.hpp"
#include "plan/templates.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

using Sizes = PackArray<std::int32_t>;
using Counts = PackArray<std::int64_t>;
using Values = PackArray<double>;

}  // namespace

void bind_optimal(py::module_& m) {
  m.def(
      "unit_histogram",
      [](const Counts& lengths, std::int64_t capacity, const PackArguments& arguments) {
        std::vector<std::int32_t> sizes;
        std::vector<std::int64_t> counts;
        {
          const ReleasedGil unlocked;
          for (const auto& group : unit_histogram(view(lengths), capacity, arguments.options)) {
            sizes.push_back(group.size);
            counts.push_back(group.count);
          }
        }
        return py::make_tuple(to_array(std::move(sizes)), to_array(std::move(counts)));
      },
      py::arg("lengths").noconvert(), py::arg("capacity"), py::arg("options"));
  m.def(
      "pack_by_patterns",
      [](const Counts& lengths, std::int64_t capacity, const PackArguments& arguments,
         const Counts& offsets, const Sizes& items, const Sizes& copies, const Counts& times) {
        const ReleasedGil unlocked;
        return std::make_shared<Packing>(
            pack_by_patterns(view(lengths), capacity, arguments.options,
                             {view(offsets), view(items), view(copies), view(times)}));
      },
      py::arg("lengths").noconvert(), py::arg("capacity"), py::arg("options"),
      py::arg("offsets").noconvert(), py::arg("items").noconvert(), py::arg("copies").noconvert(),
      py::arg("times").noconvert());
  m.def(
      "price_patterns",
      [](const Sizes& sizes, const Counts& counts, std::int64_t capacity, std::int64_t max_items,
         const Values& values, const Sizes& groups, bool backwards) {
        Priced priced;
        {
          const ReleasedGil unlocked;
          priced = price_patterns({view(sizes), view(counts), capacity, max_items}, view(values),
                                  view(groups), backwards);
        }
        return py::make_tuple(priced.best, to_array(std::move(priced.patterns.offsets)),
                              to_array(std::move(priced.patterns.items)),
                              to_array(std::move(priced.patterns.copies)));
      },
      py::arg("sizes").noconvert(), py::arg("counts").noconvert(), py::arg("capacity"),
      py::arg("max_items"), py::arg("values").noconvert(), py::arg("groups").noconvert(),
      py::arg("backwards"));
  m.def(
      "dual_bound",
      [](const Sizes& sizes, const Counts& counts, std::int64_t capacity, std::int64_t max_items,
         const Values& values, std::int64_t grid) {
        const ReleasedGil unlocked;
        return dual_bound({view(sizes), view(counts), capacity, max_items}, view(values), grid);
      },
      py::arg("sizes").noconvert(), py::arg("counts").noconvert(), py::arg("capacity"),
      py::arg("max_items"), py::arg("values").noconvert(), py::arg("grid"));
  m.def(
      "fill_templates",
      [](const Sizes& sizes, const Counts& counts, std::int64_t capacity, const Counts& starts,
         const Counts& offsets, const Sizes& buckets, const Sizes& copies, const Counts& times,
         std::int64_t slack, double seconds) {
        Filled filled;
        {
          const ReleasedGil unlocked;
          filled = fill_templates({view(sizes), view(counts), capacity, capacity}, view(starts),
                                  {view(offsets), view(buckets), view(copies), view(times)}, slack,
                                  seconds);
        }
        return py::make_tuple(to_array(std::move(filled.patterns.offsets)),
                              to_array(std::move(filled.patterns.items)),
                              to_array(std::move(filled.patterns.copies)),
                              to_array(std::move(filled.times)), to_array(std::move(filled.left)));
      },
      py::arg("sizes").noconvert(), py::arg("counts").noconvert(), py::arg("capacity"),
      py::arg("starts").noconvert(), py::arg("offsets").noconvert(), py::arg("buckets").noconvert(),
      py::arg("copies").noconvert(), py::arg("times").noconvert(), py::arg("slack"),
      py::arg("seconds"));
}

}  // namespace brimful
