// First fit: a piece goes into the first bin with room. A tournament tree over bin numbers, in
// which a run stands at its first bin.
#pragma once

#include <cstdint>
#include <vector>

namespace brimful {

class FirstFitTree {
 public:
  std::int64_t take(std::int32_t length);
  void insert(std::int64_t run, std::int64_t first_bin, std::int32_t free);

 private:
  void set(std::size_t bin, std::int32_t free);
  void grow(std::size_t bins);

  std::size_t leaves_ = 0;          // a power of two
  std::vector<std::int32_t> most_;  // [2 * leaves] most free space below; node i has 2i and 2i + 1
  std::vector<std::int64_t> runs_;  // [leaves] by first bin
};

}  // namespace brimful
