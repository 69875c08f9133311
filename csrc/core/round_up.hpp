// The least multiple that is not below a number.
#pragma once

#include <cstdint>

namespace brimful {

// value >= 0, multiple >= 1. Most alignments are 1, which needs no division.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return multiple == 1 ? value : (value + multiple - 1) / multiple * multiple;
}

}  // namespace brimful
