// The corpus and its formats. Arrays handed in are kept alive by the store made from them; arrays
// handed out keep the corpus alive.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <exception>
#include <filesystem>
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
#include "core/lane_hash.hpp"
#include "core/xxh3.hpp"
#include "corpus/block_checks.hpp"
#include "corpus/boundaries.hpp"
#include "corpus/corpus.hpp"
#include "corpus/formats.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

template <class Failure, class T>
T known(std::optional<T> parsed, const char* argument, const std::string& name,
        const char* choices) {
  if (parsed) return *parsed;
  throw Failure(std::string(argument) + "=\"" + name + "\" is unknown: choose " + choices);
}

FileName file_name(const py::object& path) {
  const py::module_ os = py::module_::import("os");
  return {
      os.attr("fsencode")(path).cast<std::string>(),
      os.attr("fsencode")(path).attr("decode")("utf-8", "backslashreplace").cast<std::string>()};
}

std::optional<TokenType> declared_type(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const auto type = parse_token_type(*name);
  if (!type) {
    throw FormatError("dtype '" + *name +
                      "' is none that tokens have; expected uint8, int8, uint16, "
                      "int16, uint32, int32 or int64");
  }
  return type;
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
  const ReleasedGil nogil;
  return open_lists(name, tokens, type, ends, wide ? 8 : 4, mask);
}

TokenStore megatron(const py::object& bin, const py::object& idx,
                    const std::optional<py::object>& loss, const std::string& rows,
                    const std::optional<std::string>& dtype) {
  const FileName bin_name = file_name(bin);
  const FileName idx_name = file_name(idx);
  const std::optional<FileName> loss_name = loss ? std::optional(file_name(*loss)) : std::nullopt;
  const MegatronUnit unit =
      known<FormatError>(parse_megatron_unit(rows), "rows", rows, "documents or sequences");
  const ReleasedGil nogil;
  return open_megatron(bin_name, idx_name, loss_name, unit, declared_type(dtype));
}

TokenStore llmc(const py::object& path, const std::optional<std::string>& dtype) {
  return open_llmc(file_name(path), declared_type(dtype));
}

TokenStore raw(const py::object& path, const std::string& dtype) {
  return open_raw(file_name(path), *declared_type(dtype));
}

std::pair<TokenStore, bool> npy(const py::object& path, const std::optional<std::string>& dtype) {
  NpyFile file = open_npy(file_name(path), declared_type(dtype));
  return {std::move(file.store), file.matrix};
}

py::array_t<std::int64_t> boundaries(const TokenStore& store, const std::string& rule,
                                     std::int64_t id) {
  const BoundaryRule parsed =
      known<FormatError>(parse_boundary_rule(rule), "eos rule", rule, "end, start or pair");
  std::vector<std::int64_t> offsets;
  {
    const ReleasedGil nogil;
    offsets = find_boundaries(store, parsed, id);
  }
  return to_array(std::move(offsets));
}

std::uint64_t hash_words(const py::array_t<std::int64_t>& words) {
  const Buffer all = buffer("words", words);
  const ReleasedGil nogil;
  LaneHash result;
  result.update(static_cast<const std::int64_t*>(all.data), static_cast<std::size_t>(all.count));
  return result.finish();
}

TokenStore cut(const TokenStore& store, const py::array_t<std::int64_t>& offsets) {
  const Buffer ends = buffer(store.name, offsets);
  const ReleasedGil nogil;
  return with_offsets(store, ends);
}

TokenStore cut_by_cache(const TokenStore& store, const py::object& path, std::int64_t begin,
                        std::uint64_t entries, std::uint64_t hash) {
  const FileName name = file_name(path);
  const ReleasedGil nogil;
  return with_cached_offsets(store, name, begin, entries, hash);
}

RowMap row_map(const std::string& name, const std::optional<py::array_t<std::int64_t>>& rows) {
  if (!rows) return {};
  // An empty map may come without an address, which would mean that there is no map.
  static constexpr std::int64_t kNoRow = 0;
  const Buffer map = buffer(name, *rows);
  return {map.owner, map.count == 0 ? &kNoRow : static_cast<const std::int64_t*>(map.data),
          map.count};
}

std::optional<py::array_t<std::int64_t>> rows(const py::object& self) {
  const RowMap& map = self.cast<const Source&>().rows;
  if (map.rows == nullptr) return std::nullopt;
  return py::array_t<std::int64_t>({map.count}, map.rows, self);
}

std::shared_ptr<Corpus> make_corpus(std::vector<Source> sources) {
  const ReleasedGil nogil;
  return std::make_shared<Corpus>(std::move(sources));
}

py::array document(const py::object& self, std::int64_t i) {
  const auto& corpus = self.cast<const Corpus&>();
  if (i < 0 || i >= corpus.num_documents()) throw py::index_error();
  DocumentRef ref{};
  {
    const ReleasedGil nogil;
    ref = corpus.locate_readable(i);
  }
  const TokenView view = view_tokens(*ref.store, ref.extent.begin);
  const bool mapped_for_good = ref.store->values != nullptr || ref.store->file == nullptr;
  py::array array(py::dtype(std::string(type_name(ref.store->type))), {ref.extent.length},
                  view.data, mapped_for_good ? self : keep(view.keep));
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::array_t<std::uint64_t> source_hashes(const Corpus& corpus) {
  std::vector<std::uint64_t> hashes;
  {
    const ReleasedGil nogil;
    for (int s = 0; s < corpus.num_sources(); ++s) hashes.push_back(corpus.source_hash(s));
  }
  return to_array(std::move(hashes));
}

// XXH3 of the blocks of a store's tokens, of its index and of its loss mask.
using Checksums =
    std::tuple<py::array_t<std::uint64_t>, std::uint64_t, std::optional<std::uint64_t>>;

std::shared_ptr<BlockChecks> block_checks(const Corpus& corpus, const std::vector<Checksums>& of) {
  std::vector<StoreChecksums> checksums;
  checksums.reserve(of.size());
  for (const auto& [blocks, index, loss] : of) {
    checksums.push_back({{blocks.data(), blocks.data() + blocks.size()}, index, loss});
  }
  const ReleasedGil unlocked;
  return std::make_shared<BlockChecks>(corpus, std::move(checksums));
}

std::uint64_t xxh3_of(const py::buffer& data) {
  const py::buffer_info info = data.request();
  return xxh3(static_cast<const std::byte*>(info.ptr),
              static_cast<std::size_t>(info.size * info.itemsize));
}

int checked_source(const Corpus& corpus, int s) {
  if (s < 0 || s >= corpus.num_sources()) throw py::index_error();
  return s;
}

py::array_t<std::int64_t> lengths(const Corpus& corpus) {
  py::array_t<std::int64_t> out(corpus.num_documents());
  std::int64_t* data = out.mutable_data();
  const ReleasedGil nogil;
  corpus.lengths(0, corpus.num_documents(), data);
  return out;
}

}  // namespace

void bind_corpus(py::module_& m) {
  // What the system says about a path becomes the OSError of its code: FileNotFoundError and so on.
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const std::filesystem::filesystem_error& error) {
      const py::object os_error = py::reinterpret_borrow<py::object>(PyExc_OSError);
      const py::bytes path(error.path1().string());
      const py::object instance = os_error(error.code().value(), error.code().message(),
                                           py::module_::import("os").attr("fsdecode")(path));
      PyErr_SetObject(py::type::handle_of(instance).ptr(), instance.ptr());
    }
  });

  m.def("xxh3", &xxh3_of, py::arg("data"));

  py::class_<TokenStore>(m, "TokenStore")
      .def_readonly("name", &TokenStore::name)
      .def_readonly("num_tokens", &TokenStore::num_tokens)
      .def_property_readonly("dtype", [](const TokenStore& s) { return type_name(s.type); })
      .def_property_readonly("has_loss_mask",
                             [](const TokenStore& s) { return s.loss_mask != nullptr; })
      .def_property_readonly("in_file", [](const TokenStore& s) { return s.file != nullptr; })
      .def("__len__", [](const TokenStore& s) { return s.documents.size(); });
  m.def("open_megatron", &megatron, py::arg("bin"), py::arg("idx"), py::arg("loss"),
        py::arg("unit"), py::arg("dtype"));
  m.def("open_llmc", &llmc, py::arg("path"), py::arg("dtype"));
  m.def("open_raw", &raw, py::arg("path"), py::arg("dtype"));
  m.def("open_npy", &npy, py::arg("path"), py::arg("dtype"));
  m.def("find_boundaries", &boundaries, py::arg("store"), py::arg("rule"), py::arg("id"));
  m.def("hash_words", &hash_words, py::arg("words"));
  m.def("with_offsets", &cut, py::arg("store"), py::arg("offsets"));
  m.def("with_cached_offsets", &cut_by_cache, py::arg("store"), py::arg("path"), py::arg("begin"),
        py::arg("entries"), py::arg("hash"));
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
      .def_readonly("stores", &Source::stores)
      .def_property_readonly("rows", &rows);

  py::class_<Corpus, std::shared_ptr<Corpus>>(m, "Corpus")
      .def(py::init(&make_corpus), py::arg("sources"))
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
      .def("renew_files", &Corpus::renew_files, py::call_guard<ReleasedGil>())
      .def_property_readonly("file_counts",
                             [](const Corpus& c) {
                               const auto counts = c.file_counts();
                               return std::pair(counts.opens, counts.reopens);
                             })
      .def("lengths", &lengths)
      .def("source_hashes", &source_hashes)
      .def("lengths_hash", [](const Corpus& c, int s) {
        checked_source(c, s);
        const ReleasedGil nogil;
        return c.lengths_hash(s);
      });

  py::class_<BlockChecks, std::shared_ptr<BlockChecks>>(m, "BlockChecks")
      .def(py::init(&block_checks), py::arg("corpus"), py::arg("checksums"));
}

}  // namespace brimful
