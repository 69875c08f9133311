// Masks and metadata for Python: arrays in, and arrays of the right size to write into.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batch/block_mask.hpp"
#include "batch/cu_seqlens.hpp"
#include "batch/dense_mask.hpp"
#include "batch/masks.hpp"
#include "batch/spare_blocks.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "core/error.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style>;
template <class T>
using MaybeArray = std::optional<Array<T>>;

template <class T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

template <class T>
std::span<const T> view(const MaybeArray<T>& array) {
  return array ? view(*array) : std::span<const T>{};
}

template <class T>
const T* data(const MaybeArray<T>& array) {
  return array ? array->data() : nullptr;
}

// Memory safety only: Python code makes the arrays, and the core checks what they say.
void check_size(const py::array& array, py::ssize_t size) {
  if (array.size() != size) throw py::value_error("an array is not of the size of its batch");
}

template <class T>
T* writable(Array<T>& out, py::ssize_t size) {
  check_size(out, size);
  return out.mutable_data();
}

py::ssize_t slots(const Array<std::int32_t>& cu_seqlens) {
  return cu_seqlens.size() == 0 ? 0 : cu_seqlens.data()[cu_seqlens.size() - 1];
}

void check_segment_values(const MaybeArray<std::int64_t>& values,
                          const Array<std::int32_t>& cu_seqlens) {
  if (values) check_size(*values, cu_seqlens.size() - 1);
}

struct LabelArguments {
  Segments segments;
  LabelSource source;
};

LabelArguments label_arguments(const py::array& ids, const Array<std::int32_t>& cu_seqlens,
                               const MaybeArray<std::uint8_t>& loss_mask,
                               std::int64_t num_documents,
                               const MaybeArray<std::int64_t>& lengths) {
  const auto type = parse_token_type(py::str(ids.dtype().attr("name")).cast<std::string>());
  if (!type || !(ids.flags() & py::array::c_style)) throw py::value_error("tokens are integers");
  check_size(ids, slots(cu_seqlens));
  if (loss_mask) check_size(*loss_mask, slots(cu_seqlens));
  check_segment_values(lengths, cu_seqlens);
  return {Segments(view(cu_seqlens), num_documents, view(lengths)),
          LabelSource{*type, static_cast<const std::byte*>(ids.data()), data(loss_mask)}};
}

AttentionRule attention_rule(bool causal, std::optional<std::int64_t> window,
                             const MaybeArray<std::int64_t>& prefix_lengths) {
  return {causal, window.value_or(kNoWindow), view(prefix_lengths)};
}

using Tuple = py::typing::Tuple<Array<std::int32_t>, py::ellipsis>;

// The arrays of a block mask for Python, and where the core writes them.
struct BlockMaskArrays {
  py::tuple tuple{8};
  BlockMask lists;
};

using Shapes = std::array<std::vector<py::ssize_t>, 8>;

constexpr std::array<const char*, 8> kBlockMaskNames{
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
    "q_num_blocks",  "q_indices",  "full_q_num_blocks",  "full_q_indices"};

Shapes shapes(py::ssize_t rows, bool with_rows, py::ssize_t q, py::ssize_t kv) {
  Shapes all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (with_rows) all[i].push_back(rows);
    all[i].push_back(i < 4 ? q : kv);
    if (i % 2 == 1) all[i].push_back(i < 4 ? kv : q);
  }
  return all;
}

BlockMask lists_at(const std::array<std::int32_t*, 8>& at) {
  return {{at[0], at[1]}, {at[2], at[3]}, {at[4], at[5]}, {at[6], at[7]}};
}

// New ones, in one block.
BlockMaskArrays block_mask_arrays(const Shapes& shapes) {
  constexpr std::size_t kLine = 16;  // numbers of a cache line
  std::array<std::size_t, 9> begins{};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::size_t size = 1;
    for (const py::ssize_t side : shapes[i]) size *= static_cast<std::size_t>(side);
    begins[i + 1] = begins[i] + (size + kLine - 1) / kLine * kLine;
  }
  const auto& sides = shapes[1];  // the rows may be missing
  const auto block = take_spare_block(
      {sides.size() == 3 ? sides[0] : 1, sides[sides.size() - 2], sides.back()}, begins.back());
  const py::capsule owner = keep(block);
  BlockMaskArrays made;
  std::array<std::int32_t*, 8> at{};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    at[i] = block.get() + begins[i];
    made.tuple[i] = py::array_t<std::int32_t>(shapes[i], at[i], owner);
  }
  made.lists = lists_at(at);
  return made;
}

// Those of an earlier call.
BlockMaskArrays block_mask_arrays(const py::tuple& out, const Shapes& shapes) {
  std::array<std::int32_t*, 8> at{};
  if (out.size() != at.size()) throw PlanError("out has not the eight arrays of a block mask");
  for (std::size_t i = 0; i < at.size(); ++i) {
    const py::handle given = out[i];
    if (py::isinstance<Array<std::int32_t>>(given)) {
      auto array = py::reinterpret_borrow<Array<std::int32_t>>(given);
      const bool fits = std::equal(shapes[i].begin(), shapes[i].end(), array.shape(),
                                   array.shape() + array.ndim());
      if (fits && array.writeable()) {
        at[i] = array.mutable_data();
        continue;
      }
    }
    throw PlanError(std::string("out.") + kBlockMaskNames[i] + " must be an int32 array of the " +
                    "shape " + py::str(py::cast(shapes[i])).cast<std::string>() +
                    ", contiguous and writable, as for this batch; make one without out");
  }
  return {out, lists_at(at)};
}

void bind_columns(py::module_& m) {
  m.def(
      "make_cu_seqlens",
      [](const Array<std::int64_t>& lengths, const Array<std::int64_t>& row_sizes,
         std::optional<std::int64_t> total, std::optional<std::int64_t> max_segments,
         std::int64_t align, bool keep_empty) {
        std::vector<std::int32_t> cu_seqlens;
        {
          const ReleasedGil unlocked;
          cu_seqlens = make_cu_seqlens(view(lengths), view(row_sizes),
                                       {total, max_segments, align, keep_empty});
        }
        return to_array(std::move(cu_seqlens));
      },
      py::arg("lengths").noconvert(), py::arg("row_sizes").noconvert(), py::arg("total"),
      py::arg("max_segments"), py::arg("align"), py::arg("keep_empty"));
  m.def(
      "check_cu_seqlens",
      [](const Array<std::int32_t>& cu_seqlens) { check_cu_seqlens(view(cu_seqlens)); },
      py::arg("cu_seqlens").noconvert());
  m.def(
      "write_position_ids",
      [](const Array<std::int32_t>& cu_seqlens, const MaybeArray<std::int64_t>& starts,
         Array<std::int64_t>& out) {
        check_segment_values(starts, cu_seqlens);
        std::int64_t* to = writable(out, slots(cu_seqlens));
        const ReleasedGil unlocked;
        write_position_ids(view(cu_seqlens), data(starts), to);
      },
      py::arg("cu_seqlens").noconvert(), py::arg("starts").noconvert(), py::arg("out").noconvert());
  m.def(
      "write_document_ids",
      [](const Array<std::int32_t>& cu_seqlens, std::int64_t num_documents,
         const MaybeArray<std::int64_t>& lengths, Array<std::int32_t>& out) {
        check_segment_values(lengths, cu_seqlens);
        std::int32_t* to = writable(out, slots(cu_seqlens));
        const ReleasedGil unlocked;
        write_document_ids(Segments(view(cu_seqlens), num_documents, view(lengths)), to);
      },
      py::arg("cu_seqlens").noconvert(), py::arg("num_documents"), py::arg("lengths").noconvert(),
      py::arg("out").noconvert());
  m.def(
      "write_bounds",
      [](const Array<std::int32_t>& cu_seqlens, std::int64_t rows,
         const MaybeArray<std::int64_t>& prefix_lengths, MaybeArray<std::int32_t>& begin,
         MaybeArray<std::int32_t>& end, MaybeArray<std::int32_t>& prefix_end) {
        const auto column = [&](MaybeArray<std::int32_t>& out) {
          return out ? writable(*out, slots(cu_seqlens)) : nullptr;
        };
        const Bounds out{column(begin), column(end), column(prefix_end)};
        const AttentionRule rule = attention_rule(true, std::nullopt, prefix_lengths);
        const ReleasedGil unlocked;
        write_bounds(view(cu_seqlens), rows, rule, out);
      },
      py::arg("cu_seqlens").noconvert(), py::arg("rows"), py::arg("prefix_lengths").noconvert(),
      py::arg("begin").noconvert(), py::arg("end").noconvert(), py::arg("prefix_end").noconvert());
  m.def(
      "write_labels",
      [](const py::array& ids, const Array<std::int32_t>& cu_seqlens,
         const MaybeArray<std::uint8_t>& loss_mask, std::int64_t num_documents,
         const MaybeArray<std::int64_t>& lengths, Array<std::int64_t>& out) {
        const LabelArguments given =
            label_arguments(ids, cu_seqlens, loss_mask, num_documents, lengths);
        std::int64_t* to = writable(out, slots(cu_seqlens));
        const ReleasedGil unlocked;
        write_labels(given.segments, given.source, to);
      },
      py::arg("ids"), py::arg("cu_seqlens").noconvert(), py::arg("loss_mask").noconvert(),
      py::arg("num_documents"), py::arg("lengths").noconvert(), py::arg("out").noconvert());
  m.def(
      "write_shift_labels",
      [](const py::array& ids, const Array<std::int32_t>& cu_seqlens,
         const MaybeArray<std::uint8_t>& loss_mask, std::int64_t num_documents,
         const MaybeArray<std::int64_t>& lengths, const MaybeArray<std::int64_t>& next_tokens,
         Array<std::int64_t>& out) {
        check_segment_values(next_tokens, cu_seqlens);
        const LabelArguments given =
            label_arguments(ids, cu_seqlens, loss_mask, num_documents, lengths);
        std::int64_t* to = writable(out, slots(cu_seqlens));
        const ReleasedGil unlocked;
        write_shift_labels(given.segments, given.source, data(next_tokens), to);
      },
      py::arg("ids"), py::arg("cu_seqlens").noconvert(), py::arg("loss_mask").noconvert(),
      py::arg("num_documents"), py::arg("lengths").noconvert(), py::arg("next_tokens").noconvert(),
      py::arg("out").noconvert());
  m.def(
      "write_loss_weights",
      [](const Array<std::int64_t>& labels, const Array<std::int32_t>& cu_seqlens,
         Array<float>& out) {
        check_size(labels, slots(cu_seqlens));
        float* to = writable(out, slots(cu_seqlens));
        const ReleasedGil unlocked;
        write_loss_weights(view(cu_seqlens), labels.data(), to);
      },
      py::arg("labels").noconvert(), py::arg("cu_seqlens").noconvert(), py::arg("out").noconvert());
}

}  // namespace

void bind_masks(py::module_& m) {
  bind_columns(m);
  m.def(
      "check_rows",
      [](const Array<std::int32_t>& cu_seqlens, std::int64_t rows) {
        return check_rows(view(cu_seqlens), rows);
      },
      py::arg("cu_seqlens").noconvert(), py::arg("rows"));
  m.def("count_blocks", &count_blocks, py::arg("slots"), py::arg("size"));
  m.def(
      "check_rule",
      [](std::optional<std::int64_t> window, const MaybeArray<std::int64_t>& prefix_lengths) {
        const AttentionRule rule = attention_rule(true, window, prefix_lengths);
        check_rule(rule, rule.prefix_lengths.size());
      },
      py::arg("window"), py::arg("prefix_lengths").noconvert());
  m.def(
      "write_dense_mask",
      [](const Array<std::int32_t>& cu_seqlens, std::int64_t rows, bool causal,
         std::optional<std::int64_t> window, const MaybeArray<std::int64_t>& prefix_lengths,
         std::uint64_t seen, std::uint64_t unseen, bool cleared, py::array& out) {
        const std::int64_t width = check_rows(view(cu_seqlens), rows);
        check_size(out, rows * width * width);
        if (!(out.flags() & py::array::c_style)) throw py::value_error("a mask is contiguous");
        const MaskValues values{static_cast<std::size_t>(out.itemsize()), seen, unseen};
        auto* to = static_cast<std::byte*>(out.mutable_data());
        const AttentionRule rule = attention_rule(causal, window, prefix_lengths);
        const ReleasedGil unlocked;
        write_dense_mask(view(cu_seqlens), rows, rule, values, cleared, to);
      },
      py::arg("cu_seqlens").noconvert(), py::arg("rows"), py::arg("causal"), py::arg("window"),
      py::arg("prefix_lengths").noconvert(), py::arg("seen"), py::arg("unseen"), py::arg("cleared"),
      py::arg("out"));
  m.def(
      "block_mask_arrays",
      [](const Array<std::int32_t>& cu_seqlens, std::int64_t rows, bool with_rows,
         std::int64_t block_q, std::int64_t block_kv, std::optional<std::int64_t> window,
         const MaybeArray<std::int64_t>& prefix_lengths, const std::optional<Tuple>& out) -> Tuple {
        const std::int64_t width = check_rows(view(cu_seqlens), rows);
        const std::int64_t q = count_blocks(width, block_q);
        const std::int64_t kv = count_blocks(width, block_kv);
        const BlockMaskArrays arrays = out ? block_mask_arrays(*out, shapes(rows, with_rows, q, kv))
                                           : block_mask_arrays(shapes(rows, with_rows, q, kv));
        const AttentionRule rule = attention_rule(true, window, prefix_lengths);
        {
          const ReleasedGil unlocked;
          write_block_mask(view(cu_seqlens), rows, rule, {block_q, block_kv}, arrays.lists);
        }
        return arrays.tuple;
      },
      py::arg("cu_seqlens").noconvert(), py::arg("rows"), py::arg("with_rows"), py::arg("block_q"),
      py::arg("block_kv"), py::arg("window"), py::arg("prefix_lengths").noconvert(),
      py::arg("out"));
}

}  // namespace brimful
