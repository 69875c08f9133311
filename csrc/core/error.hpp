// Typed errors. A message says what, where, found, expected and what to do. The bindings turn each
// type into the Python class of the same name; FormatError, PlanError and StateError are bad input
// (ValueError kin), the others are the machine's (RuntimeError kin).
#pragma once

#include <stdexcept>

namespace brimful {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct FormatError : Error {
  using Error::Error;
};
struct PlanError : Error {
  using Error::Error;
};
struct StateError : Error {
  using Error::Error;
};
struct ReadError : Error {
  using Error::Error;
};
struct DeviceError : Error {
  using Error::Error;
};
struct RingExhausted : Error {
  using Error::Error;
};
struct LoaderTimeout : Error {
  using Error::Error;
};

}  // namespace brimful
