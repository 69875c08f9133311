// Functions that run on the host and on a device alike. The device runs them a thread an index; the
// host runs the same code in tests. They use nothing of the standard library that a device lacks.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define BRIMFUL_HD __host__ __device__
#else
#define BRIMFUL_HD
#endif

namespace brimful::device {

template <class T>
BRIMFUL_HD constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}

template <class T>
BRIMFUL_HD constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

// a / b rounded up, for a >= 0 and b > 0.
template <class T>
BRIMFUL_HD constexpr T divide_up(T a, T b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace brimful::device
