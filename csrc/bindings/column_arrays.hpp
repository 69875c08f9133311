// The columns of a batch as numpy arrays over the memory that they were written to.
#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <string>
#include <vector>

#include "batch/layout.hpp"
#include "core/error.hpp"

namespace brimful {

// Throws PlanError for a name that no column has.
inline std::vector<Column> parse_columns(const std::vector<std::string>& names) {
  std::vector<Column> columns;
  for (const std::string& name : names) {
    const auto column = parse_column(name);
    if (!column) throw PlanError("fields: no column is called '" + name + "'");
    columns.push_back(*column);
  }
  return columns;
}

inline pybind11::dtype dtype_of(const ColumnInfo& info) {
  namespace py = pybind11;
  if (info.dtype == "int64") return py::dtype::of<std::int64_t>();
  return info.dtype == "int32" ? py::dtype::of<std::int32_t>() : py::dtype::of<float>();
}

// Arrays of the layout's fields, [rows, columns] each, in `slot`; they keep `owner` alive.
inline pybind11::tuple column_arrays(const Layout& layout, const BatchMeta& meta,
                                     const std::byte* slot, const pybind11::capsule& owner) {
  const std::vector<Column>& fields = layout.config().fields;
  pybind11::tuple columns(fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    columns[f] = pybind11::array(dtype_of(column_info(fields[f])), {meta.rows, meta.columns},
                                 slot + layout.offset(f), owner);
  }
  return columns;
}

}  // namespace brimful
