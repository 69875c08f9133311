// The corpus and its formats. Arrays handed in are kept alive by the store made from them; arrays
// handed out keep the corpus alive.
#include <pybind11/native_enum.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/error.hpp"
#include "corpus/corpus.hpp"
#include "corpus/formats.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

// Shares ownership of a Python object with threads that do not hold the GIL.
std::shared_ptr<const void> share(py::object object) {
  return {object.release().ptr(), [](PyObject* pointer) {
            if (!Py_IsInitialized()) return;
            const py::gil_scoped_acquire gil;
            Py_DECREF(pointer);
          }};
}

TokenType token_type(const std::string& name, const py::array& array) {
  const auto type = parse_token_type(py::str(array.dtype().attr("name")).cast<std::string>());
  if (!type || !array.dtype().attr("isnative").cast<bool>()) {
    throw FormatError(name + ": tokens of dtype " + py::repr(array.dtype()).cast<std::string>() +
                      "; expected uint8, int8, uint16, int16, uint32, int32 or int64");
  }
  return *type;
}

Buffer buffer(const std::string& name, const py::array& array) {
  if (array.ndim() != 1 || !(array.flags() & py::array::c_style)) {
    throw FormatError(name + ": expected a contiguous one-dimensional array");
  }
  return {share(array), array.data(), array.size()};
}

TokenStore arrow_store(const std::string& name, const py::array& values, const py::array& offsets,
                       const std::optional<py::array_t<std::uint8_t>>& loss_mask) {
  const bool wide = py::isinstance<py::array_t<std::int64_t>>(offsets);
  if (!wide && !py::isinstance<py::array_t<std::int32_t>>(offsets)) {
    throw FormatError(name + ": offsets of dtype " + py::repr(offsets.dtype()).cast<std::string>() +
                      "; expected int32 or int64");
  }
  const TokenType type = token_type(name, values);
  const Buffer tokens = buffer(name, values);
  const Buffer ends = buffer(name, offsets);
  const Buffer mask = loss_mask ? buffer(name, *loss_mask) : Buffer{};
  const py::gil_scoped_release nogil;
  return open_lists(name, tokens, type, ends, wide ? 8 : 4, mask);
}

RowMap row_map(const std::string& name, const std::optional<py::array_t<std::int64_t>>& rows) {
  if (!rows) return {};
  const Buffer map = buffer(name, *rows);
  return {map.owner, static_cast<const std::int64_t*>(map.data), map.count};
}

std::shared_ptr<Corpus> make_corpus(std::vector<Source> sources, std::vector<double> weights,
                                    WeightUnit unit, WhenDry when_dry) {
  const py::gil_scoped_release nogil;
  return std::make_shared<Corpus>(std::move(sources), Mix{std::move(weights), unit, when_dry});
}

py::array document(const py::object& self, std::int64_t i) {
  const auto& corpus = self.cast<const Corpus&>();
  if (i < 0 || i >= corpus.num_documents()) throw py::index_error();
  const DocumentRef ref = corpus.locate(i);
  const std::size_t size = item_size(ref.store->type);
  py::array array(py::dtype(std::string(type_name(ref.store->type))), {ref.extent.length},
                  ref.store->values + static_cast<std::size_t>(ref.extent.begin) * size, self);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

int checked_source(const Corpus& corpus, int s) {
  if (s < 0 || s >= corpus.num_sources()) throw py::index_error();
  return s;
}

py::array_t<std::int64_t> lengths(const Corpus& corpus) {
  py::array_t<std::int64_t> out(corpus.num_documents());
  std::int64_t* data = out.mutable_data();
  const py::gil_scoped_release nogil;
  corpus.lengths(0, corpus.num_documents(), data);
  return out;
}

}  // namespace

void bind_corpus(py::module_& m) {
  py::native_enum<WeightUnit>(m, "WeightUnit", "enum.Enum")
      .value("tokens", WeightUnit::kTokens)
      .value("documents", WeightUnit::kDocuments)
      .finalize();
  py::native_enum<WhenDry>(m, "WhenDry", "enum.Enum")
      .value("repeat", WhenDry::kRepeat)
      .value("drop", WhenDry::kDrop)
      .value("stop", WhenDry::kStop)
      .value("error", WhenDry::kError)
      .finalize();

  py::class_<TokenStore>(m, "TokenStore")
      .def_readonly("name", &TokenStore::name)
      .def_readonly("num_tokens", &TokenStore::num_tokens)
      .def_property_readonly("dtype", [](const TokenStore& s) { return type_name(s.type); })
      .def("__len__", [](const TokenStore& s) { return s.documents.size(); });
  m.def("arrow_store", &arrow_store, py::arg("name"), py::arg("values"), py::arg("offsets"),
        py::arg("loss_mask") = py::none());

  py::class_<Source>(m, "Source")
      .def(py::init([](std::string name, std::vector<TokenStore> stores,
                       const std::optional<py::array_t<std::int64_t>>& rows) {
             RowMap map = row_map(name, rows);
             return Source{std::move(name), std::move(stores), std::move(map)};
           }),
           py::arg("name"), py::arg("stores"), py::arg("rows") = py::none())
      .def_readonly("name", &Source::name)
      .def_readonly("stores", &Source::stores);

  py::class_<Corpus, std::shared_ptr<Corpus>>(m, "Corpus")
      .def(py::init(&make_corpus), py::arg("sources"), py::arg("weights") = std::vector<double>{},
           py::arg("unit") = WeightUnit::kTokens, py::arg("when_dry") = WhenDry::kRepeat)
      .def_property_readonly("num_documents", &Corpus::num_documents)
      .def_property_readonly("num_tokens", &Corpus::num_tokens)
      .def_property_readonly("num_sources", &Corpus::num_sources)
      .def("source_name",
           [](const Corpus& c, int s) { return c.source(checked_source(c, s)).name; })
      .def("source_documents",
           [](const Corpus& c, int s) {
             checked_source(c, s);
             return c.source_start(s + 1) - c.source_start(s);
           })
      .def("source_tokens",
           [](const Corpus& c, int s) { return c.source_tokens(checked_source(c, s)); })
      .def("document", &document)
      .def("lengths", &lengths)
      .def("lengths_hash", [](const Corpus& c, int s) {
        checked_source(c, s);
        const py::gil_scoped_release nogil;
        return c.lengths_hash(s);
      });
}

}  // namespace brimful
