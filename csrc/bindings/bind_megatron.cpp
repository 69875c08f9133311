// Megatron's indices for Python: arrays in, arrays out.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/pack_arguments.hpp"
#include "bindings/released_gil.hpp"
#include "core/error.hpp"
#include "plan/blend.hpp"
#include "plan/row_order.hpp"
#include "plan/sample_index.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

template <class Index, class Length>
py::array make_index(const PackArray<Length>& lengths, const PackArray<std::int32_t>& order,
                     std::int64_t count, const SampleRule& rule) {
  UnsetVector<Index> index;
  {
    const ReleasedGil nogil;
    index = index_samples<Index>(view(lengths), view(order), count, rule);
  }
  return to_array(std::move(index)).reshape({count + 1, std::int64_t{2}});
}

template <class Length>
py::array sample_index(const PackArray<Length>& lengths, const PackArray<std::int32_t>& order,
                       std::int64_t count, std::int64_t seq_len, bool extra_token, bool wide) {
  const SampleRule rule{.seq_len = seq_len, .extra_token = extra_token};
  if (wide) return make_index<std::int64_t>(lengths, order, count, rule);
  return make_index<std::int32_t>(lengths, order, count, rule);
}

template <class Length>
void bind_sample_index(py::module_& m) {
  m.def("sample_index", &sample_index<Length>, py::arg("lengths").noconvert(),
        py::arg("order").noconvert(), py::arg("count"), py::arg("seq_len"), py::arg("extra_token"),
        py::arg("wide"));
}

using BlendArrays = std::pair<py::array_t<std::int16_t>, py::array_t<std::int64_t>>;

template <class Deal>
BlendArrays blended(std::int64_t samples, const Deal& deal) {
  UnsetVector<std::int16_t> sets;
  UnsetVector<std::int64_t> numbers;
  {
    const ReleasedGil nogil;
    reserve_large(sets, static_cast<std::size_t>(samples));
    reserve_large(numbers, static_cast<std::size_t>(samples));
    sets.resize(static_cast<std::size_t>(samples));
    numbers.resize(static_cast<std::size_t>(samples));
    deal(sets, numbers);
  }
  return {to_array(std::move(sets)), to_array(std::move(numbers))};
}

Integers integers(const py::array& array) {
  using Kind = Integers::Kind;
  const auto make = [&](Kind kind) {
    return Integers{share(array), array.data(), array.size(), kind};
  };
  if (!(array.flags() & py::array::c_style)) throw PlanError("an index that is not contiguous");
  if (py::isinstance<py::array_t<std::int16_t>>(array)) return make(Kind::kInt16);
  if (py::isinstance<py::array_t<std::int32_t>>(array)) return make(Kind::kInt32);
  if (py::isinstance<py::array_t<std::uint32_t>>(array)) return make(Kind::kUint32);
  if (py::isinstance<py::array_t<std::int64_t>>(array)) return make(Kind::kInt64);
  throw PlanError("an index of a dtype that none has");
}

using SampleArrays = std::tuple<py::array, py::array, py::array>;

std::shared_ptr<RowOrder> make_rows(const std::vector<SampleArrays>& samples, std::int64_t rows,
                                    const std::optional<std::pair<py::array, py::array>>& blend) {
  std::vector<SourceSamples> sources;
  sources.reserve(samples.size());
  for (const auto& [documents, begins, order] : samples) {
    sources.push_back({integers(documents), integers(begins), integers(order)});
  }
  Integers sets;
  Integers numbers;
  if (blend) {
    sets = integers(blend->first);
    numbers = integers(blend->second);
  }
  return std::make_shared<RowOrder>(std::move(sources), std::move(sets), std::move(numbers), rows);
}

}  // namespace

void bind_megatron(py::module_& m) {
  py::class_<RowOrder, std::shared_ptr<RowOrder>>(m, "RowOrder")
      .def(py::init(&make_rows), py::arg("samples"), py::arg("rows"), py::arg("blend"))
      .def_property_readonly("rows", &RowOrder::rows);
  m.def(
      "count_samples",
      [](std::int64_t tokens, std::int64_t seq_len, bool extra_token, bool drop_partial) {
        return count_samples(tokens, {seq_len, extra_token, drop_partial});
      },
      py::arg("tokens"), py::arg("seq_len"), py::arg("extra_token"), py::arg("drop_partial"));
  bind_sample_index<std::int32_t>(m);
  bind_sample_index<std::int64_t>(m);
  m.def(
      "blend",
      [](const PackArray<double>& weights, std::int64_t samples) {
        return blended(samples,
                       [&](auto& sets, auto& numbers) { blend(view(weights), sets, numbers); });
      },
      py::arg("weights").noconvert(), py::arg("samples"));
  m.def(
      "blend_exactly",
      [](const PackArray<std::int64_t>& sizes, std::int64_t samples) {
        return blended(
            samples, [&](auto& sets, auto& numbers) { blend_exactly(view(sizes), sets, numbers); });
      },
      py::arg("sizes").noconvert(), py::arg("samples"));
}

}  // namespace brimful
