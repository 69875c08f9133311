// The plan and its counts.
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "core/error.hpp"
#include "plan/dealer.hpp"
#include "plan/losses.hpp"
#include "plan/plan.hpp"
#include "plan/row_order.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

// A mix, and the epoch and window from which it holds.
using MixRow = std::tuple<Mix, std::int64_t, std::int64_t>;

std::shared_ptr<Plan> make_plan(std::shared_ptr<Corpus> corpus, std::int64_t seq_len,
                                const std::string& packing, const std::string& overlong,
                                std::int64_t buffer, std::optional<std::int64_t> max_segments,
                                std::int64_t window, const std::string& shuffle,
                                std::int64_t shuffle_block, std::uint64_t seed, bool balance,
                                std::int64_t align, bool carry_label,
                                const std::vector<MixRow>& mixes,
                                const std::optional<std::shared_ptr<RowOrder>>& rows) {
  const auto strategy = parse_strategy(packing);
  if (!strategy) throw PlanError("packing: no strategy is called '" + packing + "'");
  const auto rule = parse_overlong(overlong);
  if (!rule) throw PlanError("overlong: no rule is called '" + overlong + "'");
  PackOptions options{.strategy = *strategy, .overlong = *rule, .buffer = buffer, .align = align};
  options.max_segments = max_segments.value_or(PackOptions::kUnlimited);
  const auto kind = parse_shuffle(shuffle);
  if (!kind) throw PlanError("shuffle: no order is called '" + shuffle + "'");
  PlanConfig config{seq_len, options, window,      *kind, shuffle_block,
                    seed,    balance, carry_label, {},    rows.value_or(nullptr)};
  for (const auto& [mix, epoch, from] : mixes) config.mixes.push_back({mix, epoch, from});
  const ReleasedGil nogil;
  return std::make_shared<Plan>(std::move(corpus), std::move(config));
}

std::map<std::string, py::array> window(const Plan& plan, std::int64_t epoch, std::int64_t w) {
  if (epoch < 0 || w < 0 || w >= plan.num_windows(epoch)) throw py::index_error();
  WindowPlan planned;
  {
    const ReleasedGil nogil;
    planned = plan.window(epoch, w);
  }
  std::map<std::string, py::array> arrays;
  arrays["bin_offsets"] = to_array(std::move(planned.packing.bin_offsets));
  arrays["documents"] = to_array(std::move(planned.packing.documents));
  arrays["starts"] = to_array(std::move(planned.packing.starts));
  arrays["lengths"] = to_array(std::move(planned.packing.lengths));
  return arrays;
}

py::array_t<std::int64_t> draws(const Plan& plan, std::int64_t epoch, std::int64_t first,
                                std::int64_t count) {
  if (epoch < 0) throw py::index_error();
  const std::int64_t all = plan.draws().epoch_draws(epoch);
  if (first < 0 || count < 0 || first > all - count) throw py::index_error();
  std::vector<std::int64_t> documents(static_cast<std::size_t>(count));
  {
    const ReleasedGil nogil;
    plan.draws().draw(epoch, first, documents);
  }
  return to_array(std::move(documents));
}

}  // namespace

void bind_plan(py::module_& m) {
  py::class_<Plan, std::shared_ptr<Plan>>(m, "Plan")
      .def(py::init(&make_plan), py::kw_only(), py::arg("corpus"), py::arg("seq_len"),
           py::arg("packing"), py::arg("overlong"), py::arg("buffer"), py::arg("max_segments"),
           py::arg("window"), py::arg("shuffle"), py::arg("shuffle_block"), py::arg("seed"),
           py::arg("balance"), py::arg("align"), py::arg("carry_label"), py::arg("mixes"),
           py::arg("rows"))
      .def(
          "epoch_draws",
          [](const Plan& p, std::int64_t epoch) { return p.draws().epoch_draws(epoch); },
          py::arg("epoch"))
      .def("num_windows", &Plan::num_windows, py::arg("epoch"))
      .def("draws", &draws, py::arg("epoch"), py::arg("first"), py::arg("count"))
      .def("window", &window, py::arg("epoch"), py::arg("window"));

  py::class_<Cursor>(m, "Cursor")
      .def(py::init([](std::int64_t epoch, std::int64_t window, std::int64_t bin,
                       std::int64_t step_bins, std::int64_t order_step, std::int64_t order_phase,
                       std::int64_t step) {
             return Cursor{epoch, window, bin, step_bins, {order_step, order_phase}, step};
           }),
           py::arg("epoch") = 0, py::arg("window") = 0, py::arg("bin") = 0,
           py::arg("step_bins") = 0, py::arg("order_step") = 0, py::arg("order_phase") = 0,
           py::arg("step") = 0)
      .def_readonly("epoch", &Cursor::epoch)
      .def_readonly("window", &Cursor::window)
      .def_readonly("bin", &Cursor::bin)
      .def_readonly("step_bins", &Cursor::step_bins)
      .def_property_readonly("order_step", [](const Cursor& c) { return c.order.step; })
      .def_property_readonly("order_phase", [](const Cursor& c) { return c.order.phase; })
      .def_readonly("step", &Cursor::step);

  py::class_<Geometry>(m, "Geometry")
      .def(py::init([](std::int64_t batch_size, std::int64_t world_size, std::int64_t rank,
                       std::int64_t accumulate, bool drop_last, bool trim) {
             return checked({batch_size, world_size, rank, accumulate, drop_last, trim});
           }),
           py::kw_only(), py::arg("batch_size"), py::arg("world_size"), py::arg("rank"),
           py::arg("accumulate"), py::arg("drop_last"), py::arg("trim"))
      .def_property_readonly("bins_per_step", &Geometry::bins_per_step);

  m.def("check_cursor", py::overload_cast<const Plan&, const Cursor&>(&check), py::arg("plan"),
        py::arg("cursor"), py::call_guard<ReleasedGil>());
  m.def("untouched_window", &untouched_window, py::arg("plan"), py::arg("cursor"),
        py::arg("bins_per_step"), py::call_guard<ReleasedGil>());
  m.def("settled", &settled, py::arg("plan"), py::arg("cursor"), py::arg("bins_per_step"),
        py::call_guard<ReleasedGil>());

  py::class_<Delta>(m, "Delta").def(py::init<>());
  m.def("losses_ahead", &losses_ahead, py::arg("plan"), py::arg("cursor"), py::arg("place"),
        py::arg("bins_per_step"), py::call_guard<ReleasedGil>());
  py::class_<Tally>(m, "Tally")
      .def(py::init<>())
      .def_readwrite("bins", &Tally::bins)
      .def_readwrite("slots", &Tally::slots)
      .def_readwrite("tokens", &Tally::tokens)
      .def_readwrite("effective_tokens", &Tally::effective_tokens)
      .def_readwrite("documents", &Tally::documents)
      .def_readwrite("dropped_documents", &Tally::dropped_documents)
      .def_readwrite("dropped_tokens", &Tally::dropped_tokens)
      .def_readwrite("truncated_documents", &Tally::truncated_documents)
      .def_readwrite("split_documents", &Tally::split_documents)
      .def_readwrite("empty_documents", &Tally::empty_documents)
      .def_readwrite("dummy_rows", &Tally::dummy_rows)
      .def_readwrite("skipped_steps", &Tally::skipped_steps)
      .def_readwrite("skipped_documents", &Tally::skipped_documents)
      .def_readwrite("skipped_tokens", &Tally::skipped_tokens);
}

}  // namespace brimful
