// Fisher and Yates's shuffle with a counter for its randomness: the same for the same seed on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.hpp"

namespace brimful {

class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : state_(derive_key(seed, kTag)) {}

  // Puts 0 .. n - 1 into random order by calls of swap(i, j) with j <= i.
  template <class Swap>
  void shuffle(std::size_t n, Swap&& swap) {
    for (std::size_t i = n; i-- > 1;) swap(i, below(i + 1));
  }

 private:
  static constexpr std::uint64_t kTag = 12;

  // 0 .. n - 1. One in 2^64 / n draws is uneven, which nobody can see.
  std::size_t below(std::size_t n) {
    state_ += 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(static_cast<unsigned __int128>(mix64(state_)) * n >> 64);
  }

  std::uint64_t state_;
};

}  // namespace brimful
