#include "batch/count.hpp"

#include "core/cpu.hpp"

namespace brimful {
namespace {

template <class T>
struct Seen {
  std::int64_t others = 0;
  T any_bit = 0;
};

template <class T>
[[gnu::always_inline]] inline Seen<T> look(const T* values, std::size_t size, T number) {
  Seen<T> seen;
  for (std::size_t i = 0; i < size; ++i) {
    seen.others += values[i] != number ? 1 : 0;
    seen.any_bit = static_cast<T>(seen.any_bit | values[i]);
  }
  return seen;
}

// Of a clone for each processor there can be no template.
BRIMFUL_HOT Seen<std::int64_t> look_at(const std::int64_t* values, std::size_t size,
                                       std::int64_t number) {
  return look(values, size, number);
}
BRIMFUL_HOT Seen<std::int32_t> look_at(const std::int32_t* values, std::size_t size,
                                       std::int32_t number) {
  return look(values, size, number);
}
BRIMFUL_HOT Seen<std::uint8_t> look_at(const std::uint8_t* values, std::size_t size,
                                       std::uint8_t number) {
  return look(values, size, number);
}

}  // namespace

template <class T>
std::int64_t count_other(std::span<const T> values, std::size_t rows, T number, bool skip_first) {
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  if (width == 0) return 0;
  const std::size_t skipped = skip_first ? 1 : 0;
  std::int64_t count = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    count += look_at(&values[row * width] + skipped, width - skipped, number).others;
  }
  return count;
}

template <class T>
MaskCounts count_mask(std::span<const T> values, std::size_t rows) {
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  MaskCounts counts{.rows = std::vector<std::int64_t>(rows)};
  if (width == 0) return counts;
  T any_bit = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const Seen<T> seen = look_at(&values[row * width], width, T{0});
    counts.rows[row] = seen.others;
    any_bit = static_cast<T>(any_bit | seen.any_bit);
  }
  counts.binary = any_bit == 0 || any_bit == 1;
  return counts;
}

template std::int64_t count_other(std::span<const std::int64_t>, std::size_t, std::int64_t, bool);
template std::int64_t count_other(std::span<const std::int32_t>, std::size_t, std::int32_t, bool);
template std::int64_t count_other(std::span<const std::uint8_t>, std::size_t, std::uint8_t, bool);
template MaskCounts count_mask(std::span<const std::int64_t>, std::size_t);
template MaskCounts count_mask(std::span<const std::int32_t>, std::size_t);
template MaskCounts count_mask(std::span<const std::uint8_t>, std::size_t);

}  // namespace brimful
