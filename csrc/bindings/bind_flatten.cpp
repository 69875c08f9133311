// Flattening for Python: documents are contiguous arrays, columns come back as arrays of one block.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch/flatten.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/column_arrays.hpp"
#include "bindings/released_gil.hpp"
#include "core/error.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

using Arrays = std::vector<py::array>;
using MaybeArrays = std::vector<std::optional<py::array>>;

TokenType integer_type(const py::array& array, const char* what, std::size_t number) {
  const py::dtype dtype = array.dtype();
  for (const TokenTypeInfo& info : kTokenTypes) {
    const char kind = info.name.front();  // 'u' or 'i', as numpy says it
    const bool native = dtype.byteorder() == '=' || dtype.byteorder() == '|';
    if (native && dtype.kind() == kind && dtype.itemsize() == static_cast<py::ssize_t>(info.size)) {
      return info.type;
    }
  }
  throw FormatError("document " + std::to_string(number) + ": " + what + " of dtype " +
                    py::str(dtype).cast<std::string>() +
                    "; expected uint8, int8, uint16, int16, uint32, int32 or int64");
}

// The bytes of an array with one item a token.
const std::byte* items(const py::array& array, py::ssize_t tokens, const char* what,
                       std::size_t number) {
  if (array.ndim() != 1 || !(array.flags() & py::array::c_style) || array.size() != tokens) {
    throw FormatError("document " + std::to_string(number) + ": " + what +
                      " must be a contiguous array of one item for each of its " +
                      std::to_string(tokens) + " tokens");
  }
  return static_cast<const std::byte*>(array.data());
}

std::vector<FlatDocument> documents_of(const Arrays& tokens, const MaybeArrays& masks,
                                       const MaybeArrays& labels) {
  std::vector<FlatDocument> documents(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    FlatDocument& document = documents[i];
    document.type = integer_type(tokens[i], "tokens", i);
    document.length = tokens[i].size();
    document.values = items(tokens[i], document.length, "tokens", i);
    if (i < masks.size() && masks[i]) {
      if (integer_type(*masks[i], "a loss mask", i) != TokenType::kU8) {
        throw FormatError("document " + std::to_string(i) + ": a loss mask is uint8");
      }
      document.mask = reinterpret_cast<const std::uint8_t*>(
          items(*masks[i], document.length, "a loss mask", i));
    }
    if (i < labels.size() && labels[i]) {
      document.label_type = integer_type(*labels[i], "labels", i);
      document.labels = items(*labels[i], document.length, "labels", i);
    }
  }
  return documents;
}

py::object flatten_arrays(const Arrays& tokens, const MaybeArrays& masks, const MaybeArrays& labels,
                          const std::vector<std::string>& fields, std::int64_t pad_token_id,
                          std::int64_t multiple, std::int64_t align,
                          std::optional<std::int64_t> max_segments) {
  const std::vector<FlatDocument> documents = documents_of(tokens, masks, labels);
  const FlattenOptions options{parse_columns(fields), pad_token_id, multiple, align, max_segments};
  std::optional<Flat> flat;
  {
    const ReleasedGil nogil;
    flat = flatten(documents, options);
  }
  BatchMeta& meta = flat->meta;
  const std::byte* slot = flat->slot.get();
  const py::capsule owner = keep(std::move(flat->slot));
  return py::make_tuple(column_arrays(flat->layout, meta, slot, owner),
                        to_array(std::move(meta.cu_seqlens)), to_array(std::move(meta.lengths)),
                        to_array(std::move(meta.documents)), to_array(std::move(meta.starts)),
                        meta.max_seqlen, meta.num_tokens, meta.num_items, meta.attention_work);
}

}  // namespace

void bind_flatten(py::module_& m) {
  m.def("flatten", &flatten_arrays, py::arg("tokens"), py::kw_only(), py::arg("masks"),
        py::arg("labels"), py::arg("fields"), py::arg("pad_token_id"), py::arg("multiple"),
        py::arg("align"), py::arg("max_segments"));
}

}  // namespace brimful
