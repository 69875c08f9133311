// The device's kernels for Python: made from addresses, launched on a stream or run on the host.
#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "device/host_kernels.hpp"
#include "device/kernels.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

using Address = std::uintptr_t;

template <class T>
T* at(Address address) {
  return reinterpret_cast<T*>(address);
}

using Addresses = std::map<std::string, Address>;

// The address under `name`, null where there is none. Takes it out, so that what is left is
// unknown.
template <class T>
void take(Addresses& addresses, const char* name, T*& out) {
  if (auto node = addresses.extract(name)) out = at<T>(node.mapped());
}

void check_all_taken(const Addresses& addresses) {
  if (!addresses.empty()) throw py::value_error("unknown name: " + addresses.begin()->first);
}

device::Expanded columns_at(Addresses addresses, bool weigh_shifted) {
  device::Expanded out;
  take(addresses, "input_ids", out.input_ids);
  take(addresses, "labels", out.labels);
  take(addresses, "shift_labels", out.shift_labels);
  take(addresses, "position_ids", out.position_ids);
  take(addresses, "document_ids", out.document_ids);
  take(addresses, "loss_weights", out.loss_weights);
  take(addresses, "segment_begin", out.segment_begin);
  take(addresses, "segment_end", out.segment_end);
  check_all_taken(addresses);
  out.weigh_shifted = weigh_shifted;
  return out;
}

// Every list must be there.
device::BlockLists lists_at(Addresses& addresses, const std::string& side) {
  device::BlockLists lists;
  take(addresses, (side + "_num_blocks").c_str(), lists.num_blocks);
  take(addresses, (side + "_indices").c_str(), lists.indices);
  take(addresses, ("full_" + side + "_num_blocks").c_str(), lists.full_num_blocks);
  take(addresses, ("full_" + side + "_indices").c_str(), lists.full_indices);
  if (lists.num_blocks == nullptr || lists.indices == nullptr || lists.full_num_blocks == nullptr ||
      lists.full_indices == nullptr) {
    throw py::value_error("a block mask has four arrays of " + side + " blocks");
  }
  return lists;
}

template <class Kernel>
void bind_kernel(py::module_& m, const char* name) {
  py::class_<Kernel>(m, name)
      .def_property_readonly("blocks", [](const Kernel& kernel) { return kernel.grid().blocks; })
      .def_property_readonly("threads", [](const Kernel& kernel) { return kernel.grid().threads; })
      .def(
          "run_on_host",
          [](const Kernel& kernel, bool backward, int garbage) {
            const ReleasedGil unlocked;
            device::run_on_host(
                kernel, backward ? device::TurnOrder::kBackward : device::TurnOrder::kForward,
                garbage);
          },
          py::kw_only(), py::arg("backward") = false, py::arg("garbage") = 0xA5)
      .def(
          "launch",
          [](const Kernel& kernel, int number, Address stream) {
            const ReleasedGil unlocked;
            device::launch(kernel, {number, at<void>(stream)});
          },
          py::arg("device"), py::arg("stream"));
}

}  // namespace

void bind_kernels(py::module_& m) {
  using device::ParcelOffsets;
  using device::ParcelShape;
  py::class_<ParcelOffsets>(m, "ParcelOffsets")
      .def_readonly("cu_seqlens", &ParcelOffsets::cu_seqlens)
      .def_readonly("lengths", &ParcelOffsets::lengths)
      .def_readonly("document_ids", &ParcelOffsets::document_ids)
      .def_readonly("first_positions", &ParcelOffsets::first_positions)
      .def_readonly("next_tokens", &ParcelOffsets::next_tokens)
      .def_readonly("label_bits", &ParcelOffsets::label_bits)
      .def_readonly("tokens", &ParcelOffsets::tokens)
      .def_readonly("bytes", &ParcelOffsets::bytes);
  py::class_<ParcelShape>(m, "ParcelShape")
      .def(py::init([](std::int64_t segments, std::int64_t total, std::int32_t token_bytes,
                       bool first_positions, bool next_tokens, bool label_bits) {
             return ParcelShape{segments,        total,       token_bytes,
                                first_positions, next_tokens, label_bits};
           }),
           py::kw_only(), py::arg("segments"), py::arg("total"), py::arg("token_bytes"),
           py::arg("first_positions") = false, py::arg("next_tokens") = false,
           py::arg("label_bits") = false)
      .def_property_readonly("offsets", &device::parcel_offsets);

  bind_kernel<device::ExpandKernel>(m, "ExpandKernel");
  bind_kernel<device::BlockMaskKernel>(m, "BlockMaskKernel");
  bind_kernel<device::MoveKernel>(m, "MoveKernel");

  m.def(
      "make_expand",
      [](const ParcelShape& shape, Address block, const Addresses& columns, std::int64_t row,
         std::int64_t pad_token_id, bool weigh_shifted, std::int32_t cp_size, std::int32_t cp_rank,
         bool per_document) {
        device::Parcel parcel = device::parcel_at(shape, at<const std::byte>(block));
        parcel.row = row;
        parcel.pad_token_id = pad_token_id;
        return device::make_expand(parcel, {cp_size, cp_rank, per_document},
                                   columns_at(columns, weigh_shifted));
      },
      py::arg("shape"), py::arg("block"), py::arg("columns"), py::kw_only(), py::arg("row"),
      py::arg("pad_token_id") = 0, py::arg("weigh_shifted") = false, py::arg("cp_size") = 1,
      py::arg("cp_rank") = 0, py::arg("per_document") = false);
  m.def(
      "make_block_mask",
      [](Address cu_seqlens, std::int64_t segments, std::int64_t rows, std::int64_t length,
         std::int64_t block_q, std::int64_t block_kv, Addresses out, std::int64_t window,
         Address prefix_lengths) {
        const device::BlockLists kv = lists_at(out, "kv");
        const device::BlockLists q = lists_at(out, "q");
        device::QueryBounds bounds;
        take(out, "begin", bounds.begin);
        take(out, "prefix_end", bounds.prefix_end);
        check_all_taken(out);
        return device::make_block_mask(
            {at<const std::int32_t>(cu_seqlens), at<const std::int64_t>(prefix_lengths), segments,
             rows, length, block_q, block_kv, window},
            kv, q, bounds);
      },
      py::arg("cu_seqlens"), py::kw_only(), py::arg("segments"), py::arg("rows"), py::arg("length"),
      py::arg("block_q"), py::arg("block_kv"), py::arg("out"), py::arg("window") = 0,
      py::arg("prefix_lengths") = 0);
  m.def(
      "make_move",
      [](Address token_of_slot, std::int64_t slots, std::int64_t item_bytes, Address rows,
         Address tokens, const py::object& fill) {
        device::ItemMove move{at<const std::int32_t>(token_of_slot),
                              slots,
                              item_bytes,
                              !fill.is_none(),
                              at<std::byte>(rows),
                              at<std::byte>(tokens),
                              {}};
        if (move.to_rows) {
          const auto bytes = fill.cast<std::string>();
          if (bytes.size() != sizeof move.fill) throw py::value_error("a fill has 16 bytes");
          std::memcpy(&move.fill, bytes.data(), bytes.size());
        }
        return device::make_move(move);
      },
      py::arg("token_of_slot"), py::kw_only(), py::arg("slots"), py::arg("item_bytes"),
      py::arg("rows"), py::arg("tokens"), py::arg("fill"));
}

}  // namespace brimful
