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

// Number i of a keyed permutation of 0..n-1 (0 <= i < n), in O(1) time and memory: a Feistel
// network over the smallest power of two that holds n, walked until it lands below n (Black and
// Rogaway 2002). The two halves may differ by one bit, so a walk takes fewer than two steps on
// average.
constexpr std::uint64_t permute(std::uint64_t i, std::uint64_t n, std::uint64_t key) {
  if (n <= 1) return 0;
  constexpr int kRounds = 8;
  const int bits = std::max(2, 64 - std::countl_zero(n - 1));
  const int low_bits = bits / 2;
  const int high_bits = bits - low_bits;
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << high_bits) - 1;
  std::uint64_t x = i;
  do {
    std::uint64_t low = x & low_mask;
    std::uint64_t high = x >> low_bits;
    for (int round = 0; round < kRounds; round += 2) {
      high ^= hash(key + static_cast<std::uint64_t>(round), low) & high_mask;
      low ^= hash(key + static_cast<std::uint64_t>(round) + 1, high) & low_mask;
    }
    x = (high << low_bits) | low;
  } while (x >= n);
  return x;
}

}  // namespace brimful
