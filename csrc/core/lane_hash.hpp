// A 64-bit hash of a long stream of words at about the speed of memory: tells damage and change,
// not forgery.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/random.hpp"

namespace brimful {

// Word i goes to lane i % 8, so that multiplications overlap; every block but the last must be a
// multiple of eight words.
class LaneHash {
 public:
  static constexpr std::size_t kLanes = 8;

  void update(const std::int64_t* words, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t& lane = lanes_[i % kLanes];
      lane += static_cast<std::uint64_t>(words[i]) * 0xc2b2ae3d27d4eb4full;
      lane = std::rotl(lane, 31) * 0x9e3779b185ebca87ull;
    }
    count_ += count;
  }

  std::uint64_t finish() const {
    std::uint64_t key = count_;
    for (const std::uint64_t lane : lanes_) key = hash(key, lane);
    return key;
  }

 private:
  std::array<std::uint64_t, kLanes> lanes_{};
  std::uint64_t count_ = 0;
};

}  // namespace brimful
