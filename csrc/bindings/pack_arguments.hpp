// What the packers take from Python: lengths as an int64 array, and options that keep the arrays
// they speak of alive.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <optional>
#include <span>

#include "plan/packer.hpp"

namespace brimful {

template <class T>
using PackArray = pybind11::array_t<T, pybind11::array::c_style>;

template <class T>
std::span<const T> view(const PackArray<T>& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

struct PackArguments {
  PackOptions options;  // groups and resource are views of these
  std::optional<PackArray<std::int64_t>> groups;
  std::optional<PackArray<std::int64_t>> resource;
};

}  // namespace brimful
