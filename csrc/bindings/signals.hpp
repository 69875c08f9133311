// Letting Ctrl-C through while the core is at work without the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

namespace brimful {

inline void raise_pending_signals() {
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace brimful
