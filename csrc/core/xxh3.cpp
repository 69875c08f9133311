#include "core/xxh3.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace brimful {
namespace {

constexpr std::uint64_t kPrime32_1 = 0x9E3779B1;
constexpr std::uint64_t kPrime32_2 = 0x85EBCA77;
constexpr std::uint64_t kPrime32_3 = 0xC2B2AE3D;
constexpr std::uint64_t kPrime64_1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t kPrime64_3 = 0x165667B19E3779F9;
constexpr std::uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t kPrime64_5 = 0x27D4EB2F165667C5;
constexpr std::uint64_t kPrimeMx1 = 0x165667919E3779F9;
constexpr std::uint64_t kPrimeMx2 = 0x9FB21C651E98DF25;

constexpr std::size_t kSecretBytes = 192;
alignas(64) constexpr std::array<std::uint8_t, kSecretBytes> kSecret{
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

constexpr std::size_t kStripeBytes = 64;
constexpr std::size_t kLanes = kStripeBytes / 8;
constexpr std::size_t kStripesPerBlock = (kSecretBytes - kStripeBytes) / 8;
constexpr std::size_t kBlockBytes = kStripesPerBlock * kStripeBytes;
using Lanes = std::array<std::uint64_t, kLanes>;

[[gnu::always_inline]] inline std::uint64_t load64(const void* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t load32(const void* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t secret64(std::size_t at) { return load64(kSecret.data() + at); }

// The product of 128 bits, its halves folded together.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t avalanche(std::uint64_t hash) {
  hash ^= hash >> 37;
  hash *= kPrimeMx1;
  return hash ^ (hash >> 32);
}

std::uint64_t avalanche64(std::uint64_t hash) {
  hash ^= hash >> 33;
  hash *= kPrime64_2;
  hash ^= hash >> 29;
  hash *= kPrime64_3;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_up_to_16(const std::byte* data, std::size_t size) {
  if (size > 8) {
    const std::uint64_t low = load64(data) ^ secret64(24) ^ secret64(32);
    const std::uint64_t high = load64(data + size - 8) ^ secret64(40) ^ secret64(48);
    return avalanche(size + __builtin_bswap64(low) + high + fold(low, high));
  }
  if (size >= 4) {
    const std::uint64_t joined = load32(data + size - 4) + (load32(data) << 32);
    std::uint64_t value = joined ^ secret64(8) ^ secret64(16);
    value ^= std::rotl(value, 49) ^ std::rotl(value, 24);
    value *= kPrimeMx2;
    value ^= (value >> 35) + size;
    value *= kPrimeMx2;
    return value ^ (value >> 28);
  }
  if (size > 0) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint64_t>(data[i]); };
    const std::uint64_t joined =
        (byte(0) << 16) | (byte(size >> 1) << 24) | byte(size - 1) | (size << 8);
    return avalanche64(joined ^ load32(kSecret.data()) ^ load32(kSecret.data() + 4));
  }
  return avalanche64(secret64(56) ^ secret64(64));
}

std::uint64_t mix16(const std::byte* data, std::size_t secret) {
  return fold(load64(data) ^ secret64(secret), load64(data + 8) ^ secret64(secret + 8));
}

std::uint64_t hash_up_to_128(const std::byte* data, std::size_t size) {
  std::uint64_t hash = size * kPrime64_1;
  for (std::size_t i = (size - 1) / 32 + 1; i-- > 0;) {
    hash += mix16(data + 16 * i, 32 * i);
    hash += mix16(data + size - 16 * (i + 1), 32 * i + 16);
  }
  return avalanche(hash);
}

std::uint64_t hash_up_to_240(const std::byte* data, std::size_t size) {
  std::uint64_t hash = size * kPrime64_1;
  for (std::size_t i = 0; i < 8; ++i) hash += mix16(data + 16 * i, 16 * i);
  hash = avalanche(hash);
  for (std::size_t i = 8; i < size / 16; ++i) hash += mix16(data + 16 * i, 16 * (i - 8) + 3);
  hash += mix16(data + size - 16, 136 - 17);
  return avalanche(hash);
}

#if defined(__SSE2__)

// The lanes in four registers of two. The compiler sees no product of 32 by 32 bits in the plain
// loop, and takes longer.
class State {
 public:
  explicit State(const Lanes& lanes) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i] = load(lanes.data() + 2 * i);
  }
  Lanes lanes() const { return std::bit_cast<Lanes>(pairs_); }

  void accumulate(const std::byte* data, const std::uint8_t* secret) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const __m128i value = load(data + 16 * i);
      const __m128i key = _mm_xor_si128(value, load(secret + 16 * i));
      const __m128i product = _mm_mul_epu32(key, _mm_srli_epi64(key, 32));
      const __m128i swapped = _mm_shuffle_epi32(value, _MM_SHUFFLE(1, 0, 3, 2));
      pairs_[i] = _mm_add_epi64(pairs_[i], _mm_add_epi64(swapped, product));
    }
  }
  void scramble(const std::uint8_t* secret) {
    const __m128i prime = _mm_set1_epi64x(static_cast<long long>(kPrime32_1));
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const __m128i mixed = _mm_xor_si128(pairs_[i], _mm_srli_epi64(pairs_[i], 47));
      const __m128i key = _mm_xor_si128(mixed, load(secret + 16 * i));
      const __m128i high = _mm_mul_epu32(_mm_srli_epi64(key, 32), prime);
      pairs_[i] = _mm_add_epi64(_mm_mul_epu32(key, prime), _mm_slli_epi64(high, 32));
    }
  }

 private:
  static __m128i load(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
  struct alignas(16) Pair {
    Pair() = default;
    Pair(__m128i v) : value(v) {}
    operator __m128i() const { return value; }
    __m128i value;
  };
  std::array<Pair, 4> pairs_;
};

#else

class State {
 public:
  explicit State(const Lanes& lanes) : lanes_(lanes) {}
  const Lanes& lanes() const { return lanes_; }

  void accumulate(const std::byte* data, const std::uint8_t* secret) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t value = load64(data + 8 * i);
      const std::uint64_t key = value ^ load64(secret + 8 * i);
      lanes_[i ^ 1] += value;
      lanes_[i] += (key & 0xFFFFFFFF) * (key >> 32);
    }
  }
  void scramble(const std::uint8_t* secret) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes_[i] = (lanes_[i] ^ (lanes_[i] >> 47) ^ load64(secret + 8 * i)) * kPrime32_1;
    }
  }

 private:
  Lanes lanes_;
};

#endif

// All whole blocks, then the stripes of the last one, and the last 64 bytes once more.
Lanes accumulate_all(const Lanes& lanes, const std::byte* data, std::size_t size) {
  State state(lanes);
  const std::uint8_t* secret = kSecret.data();
  const std::size_t blocks = (size - 1) / kBlockBytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t s = 0; s < kStripesPerBlock; ++s) {
      state.accumulate(data + b * kBlockBytes + s * kStripeBytes, secret + 8 * s);
    }
    state.scramble(secret + kSecretBytes - kStripeBytes);
  }
  const std::size_t stripes = (size - 1 - blocks * kBlockBytes) / kStripeBytes;
  for (std::size_t s = 0; s < stripes; ++s) {
    state.accumulate(data + blocks * kBlockBytes + s * kStripeBytes, secret + 8 * s);
  }
  state.accumulate(data + size - kStripeBytes, secret + kSecretBytes - kStripeBytes - 7);
  return state.lanes();
}

std::uint64_t hash_long(const std::byte* data, std::size_t size) {
  const Lanes lanes = accumulate_all({kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3, kPrime64_4,
                                      kPrime32_2, kPrime64_5, kPrime32_1},
                                     data, size);
  std::uint64_t hash = size * kPrime64_1;
  for (std::size_t i = 0; i < kLanes; i += 2) {
    hash += fold(lanes[i] ^ secret64(11 + 8 * i), lanes[i + 1] ^ secret64(11 + 8 * i + 8));
  }
  return avalanche(hash);
}

}  // namespace

std::uint64_t xxh3(const std::byte* data, std::size_t size) {
  if (size <= 16) return hash_up_to_16(data, size);
  if (size <= 128) return hash_up_to_128(data, size);
  if (size <= 240) return hash_up_to_240(data, size);
  return hash_long(data, size);
}

}  // namespace brimful
