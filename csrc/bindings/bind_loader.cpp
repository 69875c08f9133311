// Streams of batches and their ledger.
#include <pybind11/stl.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/column_arrays.hpp"
#include "bindings/released_gil.hpp"
#include "bindings/signals.hpp"
#include "core/error.hpp"
#include "loader/ledger.hpp"
#include "loader/stream.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

// The columns of the slot; they hold the lease, so the slot returns to the ring when the last dies.
py::tuple columns_of(const Delivered& batch, const Layout& layout) {
  return column_arrays(layout, batch.meta, batch.slot.get(), keep(batch.slot));
}

// Where the slot lies in memory that Python supplied, its rows and the slots of one: Python makes
// the columns, out of the object that the memory is of.
py::tuple place_of(const Delivered& batch) {
  return py::make_tuple(reinterpret_cast<std::uintptr_t>(batch.slot.get()), batch.meta.rows,
                        batch.meta.columns);
}

// The caller keeps the memory until the batch that lies there is delivered, or the stream closed.
void supply(Stream& stream, py::array_t<std::uint8_t, py::array::c_style>& block) {
  auto* bytes = reinterpret_cast<std::byte*>(block.mutable_data());
  stream.supply({bytes, static_cast<std::size_t>(block.size())});
}

// To let others run costs more than to take a batch that is there.
template <class Take>
std::optional<Delivered> without_gil(Stream& stream, const Take& take) {
  std::optional<ReleasedGil> nogil;
  if (!stream.ready()) nogil.emplace();
  return take();
}

// What Python makes a batch of: `columns`, or where they are, and all else.
py::tuple parts_of(Delivered& batch, const py::tuple& columns) {
  BatchMeta& meta = batch.meta;
  return py::make_tuple(
      columns, to_array(std::move(meta.cu_seqlens)), to_array(std::move(meta.lengths)),
      to_array(std::move(meta.documents)), to_array(std::move(meta.starts)), meta.max_seqlen,
      meta.num_tokens, meta.num_items, batch.spec.num_items_step, batch.spec.num_items_step_global,
      batch.spec.step, batch.spec.micro_batch, meta.attention_work, meta.bad.size());
}

py::object next(Stream& stream) {
  auto batch = without_gil(stream, [&] { return stream.next(raise_pending_signals); });
  if (!batch) return py::none();
  return parts_of(*batch,
                  stream.supplied() ? place_of(*batch) : columns_of(*batch, stream.layout()));
}

// As next(), for a batch on a device: the address of its destination, its rows, the slots of one,
// and the entries of cu_seqlens, which the destination begins with.
py::object next_on(Stream& stream, std::uintptr_t compute) {
  auto batch = without_gil(stream, [&] {
    return stream.next_on(reinterpret_cast<void*>(compute), raise_pending_signals);
  });
  if (!batch) return py::none();
  const Sent& sent = *batch->sent;
  return parts_of(*batch, py::make_tuple(reinterpret_cast<std::uintptr_t>(sent.destination),
                                         batch->meta.rows, batch->meta.columns, sent.segments + 1));
}

std::vector<std::size_t> device_offsets(const DeviceLayout& layout) {
  std::vector<std::size_t> offsets(layout.layout().config().fields.size());
  for (std::size_t f = 0; f < offsets.size(); ++f) offsets[f] = layout.offset(f);
  return offsets;
}

Layout make_layout(const std::vector<std::string>& fields, bool varlen, bool keep_tail,
                   std::int64_t batch_size, std::int64_t seq_len, std::int64_t pad_token_id,
                   bool continue_positions, std::optional<std::int64_t> vocab_size, bool quarantine,
                   bool trimmed, std::int64_t align, bool carry_label,
                   std::optional<std::int64_t> max_segments, std::int64_t cp_size,
                   std::int64_t cp_rank, const std::string& cp_split) {
  LayoutConfig config{.fields = parse_columns(fields),
                      .varlen = varlen,
                      .keep_tail = keep_tail,
                      .trimmed = trimmed,
                      .batch_size = batch_size,
                      .seq_len = seq_len,
                      .pad_token_id = pad_token_id,
                      .continue_positions = continue_positions,
                      .vocab_size = vocab_size,
                      .quarantine = quarantine,
                      .align = align,
                      .carry_label = carry_label,
                      .max_segments = max_segments,
                      .zigzag = {cp_size, cp_rank, ZigzagUnit::kSequence}};
  const auto unit = parse_zigzag_unit(cp_split);
  if (!unit) throw PlanError("cp_split: no unit is called '" + cp_split + "'");
  config.zigzag.unit = *unit;
  return Layout(std::move(config));
}

ReadConfig read_config(const std::string& io,
                       const std::optional<std::shared_ptr<BlockChecks>>& checks) {
  const auto mode = parse_io(io);
  if (!mode) throw PlanError("io=\"" + io + "\" is unknown: choose mmap or pread");
  return {*mode, checks.value_or(nullptr)};
}

PrefetchConfig prefetch_config(int num_workers, std::int64_t depth,
                               std::optional<std::int64_t> max_slots, double timeout,
                               bool supplied) {
  return {num_workers, depth, max_slots,
          std::chrono::nanoseconds(static_cast<std::int64_t>(timeout * 1e9)),
          supplied ? Ring::Memory::kSupplied : Ring::Memory::kOwn};
}

std::unique_ptr<Stream> make_stream(const std::shared_ptr<Plan>& plan, const Layout& layout,
                                    const Geometry& geometry, const Cursor& cursor,
                                    const ReadConfig& read, const PrefetchConfig& prefetch,
                                    const std::shared_ptr<Ledger>& ledger, const StepSet& skip,
                                    std::int64_t steps_before,
                                    const std::optional<std::shared_ptr<Courier>>& courier) {
  return std::make_unique<Stream>(plan, layout, geometry, cursor, read, prefetch, ledger, skip,
                                  steps_before, courier.value_or(nullptr));
}

// Ends a stream when the iterator goes that holds this; what its threads write to goes after it.
// Native, for an interrupt that Python hears of in a finalizer of its own is dropped there.
class StreamEnd {
 public:
  StreamEnd(py::object stream, py::object kept)
      : kept_(std::move(kept)), stream_(std::move(stream)) {}
  ~StreamEnd() {
    auto& stream = stream_.cast<Stream&>();
    const ReleasedGil nogil;
    stream.close();
  }
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

 private:
  py::object kept_;
  py::object stream_;
};

// The columns of exposure: int64 [sources], by name.
using Exposure = std::map<std::string, py::array_t<std::int64_t>>;

constexpr std::pair<const char*, std::int64_t SourceTally::*> kExposureColumns[] = {
    {"documents", &SourceTally::documents},
    {"tokens", &SourceTally::tokens},
    {"effective_tokens", &SourceTally::effective_tokens},
    {"dropped_documents", &SourceTally::dropped_documents},
    {"dropped_tokens", &SourceTally::dropped_tokens},
    {"skipped_documents", &SourceTally::skipped_documents},
    {"skipped_tokens", &SourceTally::skipped_tokens},
};

void restore(Ledger& ledger, const Tally& global, const Exposure& exposure, const Delta& ahead) {
  std::vector<SourceTally> tallies(static_cast<std::size_t>(exposure.at("documents").size()));
  for (std::size_t s = 0; s < tallies.size(); ++s) tallies[s].source = static_cast<int>(s);
  for (const auto& [name, field] : kExposureColumns) {
    const auto column = exposure.at(name).unchecked<1>();
    if (static_cast<std::size_t>(column.shape(0)) != tallies.size()) {
      throw StateError("the state has exposure of several numbers of sources");
    }
    for (std::size_t s = 0; s < tallies.size(); ++s) {
      tallies[s].*field = column(static_cast<py::ssize_t>(s));
    }
  }
  ledger.restore(global, tallies, ahead);
}

Exposure exposure(const Counts& counts) {
  Exposure columns;
  for (const auto& [name, field] : kExposureColumns) {
    std::vector<std::int64_t> column;
    column.reserve(counts.exposure.size());
    for (const SourceTally& tally : counts.exposure) column.push_back(tally.*field);
    columns[name] = to_array(std::move(column));
  }
  return columns;
}

// Document, source, file, whether its mask is to blame, place and token; epoch and step in it.
using BadRow = std::tuple<std::int64_t, std::string, std::string, bool, std::int64_t, std::int64_t,
                          std::int64_t, std::int64_t>;

// Pieces of this corpus, which keeps the files that they name.
std::vector<BadRow> bad_documents(const Ledger& ledger, const Corpus& corpus, std::size_t first) {
  std::vector<BadRow> rows;
  for (const auto& [bad, epoch, step] : ledger.bad_documents(first)) {
    rows.emplace_back(bad.document, corpus.source(corpus.source_of(bad.document)).name,
                      bad.store->name, bad.reason == BadReason::kMasked, bad.place, bad.token,
                      epoch, step);
  }
  return rows;
}

// Plan, read, fill and backpressure, in seconds.
using ThreadRow = std::array<double, 4>;

std::vector<ThreadRow> threads(const PrefetchCounters& counters) {
  std::vector<ThreadRow> rows;
  rows.reserve(counters.threads.size());
  for (const ThreadSeconds& t : counters.threads) {
    rows.push_back({t.plan, t.read, t.fill, t.backpressure});
  }
  return rows;
}

// Place (number, epoch, step, micro-batch, whether it is the first), counts (slots, tokens,
// effective tokens, attention work), times (plan, read, fill, running, stall), the ring (queue
// depth, slots in use), places in time (leased, claimed, filled, entered, taken), thread and slot,
// and the number at the starvation meter.
using RecordRow =
    std::tuple<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>,
               std::array<std::int64_t, 4>, std::array<double, 5>, std::array<std::int64_t, 2>,
               std::array<double, 5>, std::tuple<std::int64_t, std::uintptr_t>,
               std::optional<std::int64_t>>;

std::vector<RecordRow> records(Ledger& ledger, std::int64_t since) {
  std::vector<RecordRow> rows;
  for (const BatchRecord& r : ledger.records().list(since)) {
    const BatchTimes& t = r.times;
    rows.push_back({{r.number, r.epoch, r.step, r.micro_batch, t.first},
                    {r.slots, r.tokens, r.effective_tokens, r.attention_work},
                    {t.plan, t.read, t.fill, t.running, t.stall},
                    {t.queue_depth, t.slots_in_use},
                    {t.leased, t.claimed, t.filled, t.entered, t.taken},
                    {t.thread, t.slot},
                    r.measured});
  }
  return rows;
}

// Number, and load, ring, copy, handoff and headroom in seconds.
using StarvationRow = std::tuple<std::int64_t, std::array<double, 5>>;

std::vector<StarvationRow> starved_batches(Transfer& transfer, std::int64_t since) {
  std::vector<StarvationRow> rows;
  for (const device::BatchStarvation& b : transfer.meter().batches(since)) {
    rows.push_back({b.number, {b.load, b.ring, b.copy, b.handoff, b.headroom}});
  }
  return rows;
}

}  // namespace

void bind_loader(py::module_& m) {
  py::class_<Layout>(m, "Layout")
      .def(py::init(&make_layout), py::kw_only(), py::arg("fields"), py::arg("varlen"),
           py::arg("keep_tail"), py::arg("batch_size"), py::arg("seq_len"), py::arg("pad_token_id"),
           py::arg("continue_positions"), py::arg("vocab_size"), py::arg("quarantine"),
           py::arg("trimmed"), py::arg("align"), py::arg("carry_label"), py::arg("max_segments"),
           py::arg("cp_size"), py::arg("cp_rank"), py::arg("cp_split"))
      .def_property_readonly("slot_bytes", &Layout::slot_bytes)
      .def_property_readonly("offsets", &Layout::offsets);
  py::class_<ReadConfig>(m, "ReadConfig")
      .def(py::init(&read_config), py::kw_only(), py::arg("io"), py::arg("checks"));
  py::class_<PrefetchConfig>(m, "PrefetchConfig")
      .def(py::init(&prefetch_config), py::kw_only(), py::arg("num_workers"), py::arg("depth"),
           py::arg("max_slots"), py::arg("timeout"), py::arg("supplied"));
  py::class_<PrefetchCounters>(m, "PrefetchCounters")
      .def_readonly("stall_seconds", &PrefetchCounters::stall_seconds)
      .def_readonly("first_batch_seconds", &PrefetchCounters::first_batch_seconds)
      .def_property_readonly("threads", &threads)
      .def_readonly("queue_depths", &PrefetchCounters::queue_depths)
      .def_readonly("slots", &PrefetchCounters::slots)
      .def_readonly("slots_grown", &PrefetchCounters::slots_grown);

  py::class_<Counts>(m, "Counts")
      .def_readonly("batches", &Counts::batches)
      .def_readonly("rank", &Counts::rank)
      .def_readonly("bad_documents", &Counts::bad_documents)
      .def_readonly("bad_tokens", &Counts::bad_tokens)
      .def_readonly("all_ranks", &Counts::global)
      .def_property_readonly("steps", [](const Counts& c) { return c.evenness.steps; })
      .def_property_readonly("imbalance", [](const Counts& c) { return c.evenness.imbalance; })
      .def_property_readonly("exposure", &exposure);
  py::class_<Ledger, std::shared_ptr<Ledger>>(m, "Ledger")
      .def(py::init<int>(), py::arg("num_sources"))
      .def("counts", &Ledger::counts)
      .def("records", &records, py::arg("since"))
      .def_property_readonly("num_records", [](Ledger& l) { return l.records().added(); })
      .def("bad_documents", &bad_documents, py::arg("corpus"), py::arg("first"))
      .def("restore", &restore, py::arg("all_ranks"), py::arg("exposure"), py::arg("ahead"))
      .def("restart", &Ledger::restart);

  py::class_<Transfer, std::shared_ptr<Transfer>>(m, "Transfer")
      .def(py::init<std::shared_ptr<device::DeviceApi>, int>(), py::arg("api"), py::arg("device"),
           py::call_guard<ReleasedGil>())
      .def_property_readonly(
          "copy_stream",
          [](const Transfer& t) { return reinterpret_cast<std::uintptr_t>(t.copies().handle); })
      .def_property_readonly("starvation", [](Transfer& t) { return t.meter().counts(); })
      .def("starved_batches", &starved_batches, py::arg("since"))
      .def_property_readonly("pinned_bytes", [](const Transfer& t) { return t.memory()->bytes(); });

  py::class_<DeviceLayout>(m, "DeviceLayout")
      .def(py::init([](const Layout& layout, const Corpus& corpus) {
             return DeviceLayout(layout, corpus);
           }),
           py::arg("layout"), py::arg("corpus"))
      .def_property_readonly("bytes", &DeviceLayout::bytes)
      .def_property_readonly("offsets", &device_offsets);
  py::class_<Courier, std::shared_ptr<Courier>>(m, "Courier")
      .def(py::init<std::shared_ptr<Transfer>, DeviceLayout>(), py::arg("transfer"),
           py::arg("layout"))
      .def(
          "add_destination",
          [](Courier& courier, std::uintptr_t address) {
            courier.add_destination(reinterpret_cast<std::byte*>(address));
          },
          py::arg("address"));

  py::class_<Stream>(m, "Stream")
      .def(py::init(&make_stream), py::arg("plan"), py::arg("layout"), py::arg("geometry"),
           py::arg("cursor"), py::arg("read"), py::arg("prefetch"), py::arg("ledger"),
           py::arg("skip"), py::arg("steps_before"), py::arg("courier") = std::nullopt,
           py::call_guard<ReleasedGil>())
      .def("next_on", &next_on, py::arg("compute_stream"))
      .def("refuse_if_forked", &Stream::refuse_if_forked)
      .def_property_readonly("blocks_wanted", &Stream::blocks_wanted)
      .def("supply", &supply, py::arg("block").noconvert())
      .def("next", &next)
      .def("close", &Stream::close, py::call_guard<ReleasedGil>())
      .def_property_readonly("closed", &Stream::closed)
      .def_property_readonly("epoch", &Stream::epoch)
      .def_property_readonly("cursor", &Stream::cursor)
      .def_property_readonly("standing", &Stream::standing)
      .def_property_readonly("passed_steps", &Stream::passed_steps)
      .def_property_readonly("epoch_steps", &Stream::epoch_steps)
      .def_property_readonly("counters", &Stream::counters);
  py::class_<StreamEnd>(m, "StreamEnd")
      .def(py::init([](Stream& stream, py::object kept) {
             return std::make_unique<StreamEnd>(
                 py::cast(stream, py::return_value_policy::reference), std::move(kept));
           }),
           py::arg("stream"), py::arg("kept"));
}

}  // namespace brimful
