// Unpadding for Python: arrays of bytes, an item a slot, in and out.
#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/unpad.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "core/error.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

using Bytes = py::array_t<std::uint8_t, py::array::c_style>;  // [items, bytes of an item]
using Offsets = py::array_t<std::int64_t, py::array::c_style>;

std::span<const std::int64_t> view(const Offsets& offsets) {
  return {offsets.data(), static_cast<std::size_t>(offsets.size())};
}

// Throws unless both hold the items that `where` speaks of, of one size.
void check_items(const TokenRuns& where, const Bytes& padded, const Bytes& values) {
  if (padded.ndim() != 2 || values.ndim() != 2 || padded.shape(1) != values.shape(1) ||
      padded.shape(0) != where.rows * where.width || values.shape(0) < where.num_tokens) {
    throw py::value_error("columns must hold an item a slot and an item a token");
  }
}

const std::byte* items(const Bytes& bytes) {
  return reinterpret_cast<const std::byte*>(bytes.data());
}

std::byte* items(Bytes& bytes) { return reinterpret_cast<std::byte*>(bytes.mutable_data()); }

}  // namespace

void bind_unpad(py::module_& m) {
  py::class_<TokenRuns>(m, "TokenRuns")
      .def_readonly("rows", &TokenRuns::rows)
      .def_readonly("width", &TokenRuns::width)
      .def_readonly("num_tokens", &TokenRuns::num_tokens)
      .def_readonly("total", &TokenRuns::total)
      .def_readonly("max_seqlen", &TokenRuns::max_seqlen)
      .def_property_readonly("cu_seqlens",
                             [](const TokenRuns& where) { return to_array(where.cu_seqlens); });
  m.def(
      "find_tokens",
      [](const Bytes& mask, std::int64_t multiple) {
        if (mask.ndim() != 2) throw py::value_error("a mask has rows and slots");
        const std::span<const std::uint8_t> slots(mask.data(),
                                                  static_cast<std::size_t>(mask.size()));
        const py::ssize_t rows = mask.shape(0);
        const py::ssize_t width = mask.shape(1);
        const ReleasedGil unlocked;
        return find_tokens(slots, rows, width, multiple);
      },
      py::arg("mask").noconvert(), py::arg("multiple"));
  m.def(
      "count_tokens",
      [](const Offsets& lengths, std::int64_t width, std::int64_t multiple) {
        const ReleasedGil unlocked;
        return count_tokens(view(lengths), width, multiple);
      },
      py::arg("lengths").noconvert(), py::arg("width"), py::arg("multiple"));
  m.def(
      "lay_segments",
      [](const Offsets& cu_seqlens, std::int64_t rows, std::int64_t width, bool pad_left) {
        const ReleasedGil unlocked;
        return lay_segments(view(cu_seqlens), rows, width, pad_left ? Side::kLeft : Side::kRight);
      },
      py::arg("cu_seqlens").noconvert(), py::arg("rows"), py::arg("width"), py::arg("pad_left"));
  m.def(
      "check_segments",
      [](const TokenRuns& where, const Offsets& cu_seqlens) {
        const ReleasedGil unlocked;
        check_segments(where, view(cu_seqlens));
      },
      py::arg("where"), py::arg("cu_seqlens").noconvert());
  m.def(
      "gather_tokens",
      [](const TokenRuns& where, const Bytes& padded, Bytes& values) {
        check_items(where, padded, values);
        const auto item_size = static_cast<std::size_t>(padded.shape(1));
        std::byte* out = items(values);
        const ReleasedGil unlocked;
        gather_tokens(where, items(padded), item_size, out);
      },
      py::arg("where"), py::arg("padded").noconvert(), py::arg("values").noconvert());
  m.def(
      "scatter_tokens",
      [](const TokenRuns& where, const Bytes& values, const Bytes& fill, Bytes& padded) {
        check_items(where, padded, values);
        const auto item_size = static_cast<std::size_t>(padded.shape(1));
        const std::span<const std::byte> pattern(items(fill),
                                                 static_cast<std::size_t>(fill.size()));
        if (pattern.empty() || item_size % pattern.size() != 0) {
          throw py::value_error("items must hold whole fills");
        }
        std::byte* out = items(padded);
        const ReleasedGil unlocked;
        scatter_tokens(where, items(values), item_size, pattern, out);
      },
      py::arg("where"), py::arg("values").noconvert(), py::arg("fill").noconvert(),
      py::arg("padded").noconvert());
}

}  // namespace brimful
