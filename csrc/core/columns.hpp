// The hot loops: one column of one segment each. Lengths count tokens; `source` need not be
// aligned. Masks are one byte a token, zero for a token that is not trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/cpu.hpp"

namespace brimful::columns {

template <class T>
inline T load(const std::byte* source, std::int64_t i) {
  T value;
  std::memcpy(&value, source + static_cast<std::size_t>(i) * sizeof(T), sizeof value);
  return value;
}

// What is read next, to be asked for meanwhile. Documents of a shuffled corpus lie apart, so every
// one begins where the processor cannot foresee it; from there on it reads ahead by itself. It has
// room for a few dozen requests and waits where there are more, so they are best spread out. Never
// faults, also where nothing is mapped.
class Ahead {
 public:
  Ahead() = default;
  Ahead(const std::byte* source, std::size_t bytes)
      : next_(source), lines_((bytes < kMost ? bytes + kLine - 1 : kMost) / kLine) {}
  std::size_t lines() const { return lines_; }
  void ask(std::size_t lines) {
    for (; lines > 0 && lines_ > 0; --lines, --lines_, next_ += kLine) {
      __builtin_prefetch(next_, /*rw=*/0, 2);
    }
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kMost = 4096;  // beyond it is no gain

  const std::byte* next_ = nullptr;
  std::size_t lines_ = 0;
};

// out[i] = source[i]
template <class T>
BRIMFUL_HOT void widen(const std::byte* source, std::int64_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<std::int64_t>(load<T>(source, i));
}

// The same; asks for everything ahead by and by.
template <class T>
void widen(const std::byte* source, std::int64_t* out, std::int64_t n, Ahead& ahead) {
  constexpr std::int64_t kBlock = 64;
  for (; n > kBlock && ahead.lines() > 0; n -= kBlock) {
    const auto blocks = static_cast<std::size_t>(n / kBlock);
    ahead.ask((ahead.lines() + blocks - 1) / blocks);
    widen<T>(source, out, kBlock);
    source += kBlock * sizeof(T);
    out += kBlock;
  }
  ahead.ask(ahead.lines());
  widen<T>(source, out, n);
}

// out[i] = source[i] where the mask is set, `ignore` elsewhere
template <class T>
BRIMFUL_HOT void widen_masked(const std::byte* source, const std::uint8_t* mask,
                              std::int64_t ignore, std::int64_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = mask[i] != 0 ? static_cast<std::int64_t>(load<T>(source, i)) : ignore;
  }
}

// out[i] = 1 where the mask is set, 0 elsewhere
BRIMFUL_HOT inline void weigh(const std::uint8_t* mask, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = mask[i] != 0 ? 1.0F : 0.0F;
}

BRIMFUL_HOT inline std::int64_t count_set(const std::uint8_t* mask, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += mask[i] != 0 ? 1 : 0;
  return count;
}

// The values that are not `other`.
BRIMFUL_HOT inline std::int64_t count_other(const std::int64_t* values, std::int64_t other,
                                            std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += values[i] != other ? 1 : 0;
  return count;
}

// out[i] = weight where the value is not `other`, 0 elsewhere
BRIMFUL_HOT inline void weigh_other(const std::int64_t* values, std::int64_t other, float weight,
                                    float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = values[i] != other ? weight : 0.0F;
}

// out[i] = first + i
BRIMFUL_HOT inline void count_up(std::int64_t first, std::int64_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = first + i;
}

// The first token outside [0, limit), or n. A limit of 2^63 finds negative tokens only.
template <class T>
BRIMFUL_HOT std::int64_t first_outside(const std::byte* source, std::uint64_t limit,
                                       std::int64_t n) {
  // Blocks keep the inner loop free of branches, so that it vectorises.
  constexpr std::int64_t kBlock = 256;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = begin + kBlock < n ? begin + kBlock : n;
    std::int64_t outside = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      // A negative token is a huge one when seen as unsigned.
      const auto token = static_cast<std::uint64_t>(static_cast<std::int64_t>(load<T>(source, i)));
      outside |= token >= limit ? 1 : 0;
    }
    if (outside == 0) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto token = static_cast<std::uint64_t>(static_cast<std::int64_t>(load<T>(source, i)));
      if (token >= limit) return i;
    }
  }
  return n;
}

}  // namespace brimful::columns
