// Counter-based randomness: hashes and keyed permutations that are pure functions of their
// arguments, so that any element of a shuffled order can be computed without the ones before it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace brimful {

// A bijection of 64-bit words with full avalanche (the SplitMix64 finalizer, Steele et al. 2014).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Folds one word into a running key: hash(hash(seed, a), b) depends on order and on every bit.
constexpr std::uint64_t hash(std::uint64_t key, std::uint64_t word) {
  return mix64(mix64(key + 0x9e3779b97f4a7c15ull) ^ (word + 0x2545f4914f6cdd1dull));
}

template <class... Words>
constexpr std::uint64_t derive_key(std::uint64_t seed, Words... words) {
  ((seed = hash(seed, static_cast<std::uint64_t>(words))), ...);
  return seed;
}

// A keyed bijection of the words below the smallest power of two that holds 0 .. n - 1: a Feistel
// network whose halves may differ by one bit.
class Feistel {
 public:
  constexpr Feistel(std::uint64_t n, std::uint64_t key)
      : key_(key), low_bits_(bits_of(n) / 2), high_bits_(bits_of(n) - low_bits_) {}

  constexpr std::uint64_t forward(std::uint64_t x) const {
    std::uint64_t low = x & mask(low_bits_);
    std::uint64_t high = x >> low_bits_;
    for (std::uint64_t round = 0; round < kRounds; round += 2) {
      high ^= hash(key_ + round, low) & mask(high_bits_);
      low ^= hash(key_ + round + 1, high) & mask(low_bits_);
    }
    return (high << low_bits_) | low;
  }
  constexpr std::uint64_t backward(std::uint64_t x) const {
    std::uint64_t low = x & mask(low_bits_);
    std::uint64_t high = x >> low_bits_;
    for (std::uint64_t round = kRounds; round > 0; round -= 2) {
      low ^= hash(key_ + round - 1, high) & mask(low_bits_);
      high ^= hash(key_ + round - 2, low) & mask(high_bits_);
    }
    return (high << low_bits_) | low;
  }

 private:
  static constexpr std::uint64_t kRounds = 8;
  static constexpr int bits_of(std::uint64_t n) {
    return std::max(2, 64 - std::countl_zero(n - 1));
  }
  static constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

  std::uint64_t key_;
  int low_bits_;
  int high_bits_;
};

// Number i of a keyed permutation of 0..n-1 (0 <= i < n), in O(1) time and memory: a bijection of
// up to twice as many words, walked until it lands below n (Black and Rogaway 2002), which takes
// fewer than two steps on average.
constexpr std::uint64_t permute(std::uint64_t i, std::uint64_t n, std::uint64_t key) {
  if (n <= 1) return 0;
  const Feistel network(n, key);
  do {
    i = network.forward(i);
  } while (i >= n);
  return i;
}

// The i whose permute(i, n, key) is `image`: the same walk backwards.
constexpr std::uint64_t unpermute(std::uint64_t image, std::uint64_t n, std::uint64_t key) {
  if (n <= 1) return 0;
  const Feistel network(n, key);
  do {
    image = network.backward(image);
  } while (image >= n);
  return image;
}

}  // namespace brimful
