// numpy arrays over memory that C++ owns, without a copy.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brimful {

// A Python object that keeps `value` alive.
template <class T>
pybind11::capsule keep(T value) {
  auto owned = std::make_unique<T>(std::move(value));
  pybind11::capsule capsule(owned.get(), [](void* p) { delete static_cast<T*>(p); });
  owned.release();
  return capsule;
}

template <class T, class Allocator>
pybind11::array_t<T> to_array(std::vector<T, Allocator> values) {
  const auto size = static_cast<pybind11::ssize_t>(values.size());
  const T* data = values.data();
  return pybind11::array_t<T>({size}, data, keep(std::move(values)));
}

// Shares ownership of a Python object with threads that do not hold the GIL.
inline std::shared_ptr<const void> share(pybind11::object object) {
  return {object.release().ptr(), [](PyObject* pointer) {
            if (!Py_IsInitialized()) return;
            const pybind11::gil_scoped_acquire gil;
            Py_DECREF(pointer);
          }};
}

}  // namespace brimful
