#include "batch/dense_mask.hpp"

#include <algorithm>

#include "batch/cu_seqlens.hpp"

namespace brimful {
namespace {

// Keys of one query, counted in its row: the prefix apart from those near it.
struct SeenKeys {
  std::int64_t prefix_begin;
  std::int64_t prefix_end;
  std::int64_t near_begin;  // not before prefix_end
  std::int64_t near_end;
};

template <class T>
void write_query(const SeenKeys& keys, std::int64_t width, const MaskValues& values, bool cleared,
                 T* out) {
  if (!cleared) {
    const auto unseen = static_cast<T>(values.unseen);
    std::fill(out, out + keys.prefix_begin, unseen);
    std::fill(out + keys.prefix_end, out + keys.near_begin, unseen);
    std::fill(out + keys.near_end, out + width, unseen);
  }
  const auto seen = static_cast<T>(values.seen);
  std::fill(out + keys.prefix_begin, out + keys.prefix_end, seen);
  std::fill(out + keys.near_begin, out + keys.near_end, seen);
}

template <class T>
void write(std::span<const std::int32_t> cu_seqlens, std::int64_t width, const AttentionRule& rule,
           const MaskValues& values, bool cleared, T* out) {
  const std::int64_t window = std::min(rule.window, width);
  std::int64_t row = 0;  // its first slot
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    if (cu_seqlens[i] == cu_seqlens[i + 1]) continue;
    if (cu_seqlens[i] == row + width) row += width;
    const std::int64_t begin = cu_seqlens[i] - row;
    const std::int64_t end = cu_seqlens[i + 1] - row;
    const std::int64_t prefix_end = rule.prefix_end(i, begin, end);
    for (std::int64_t q = begin; q < end; ++q) {
      SeenKeys keys{.prefix_begin = begin,
                    .prefix_end = prefix_end,
                    .near_begin = std::max(begin, q - window + 1),
                    .near_end = rule.causal ? q + 1 : std::min(end, q + window)};
      if (keys.near_begin <= prefix_end) {  // they touch
        keys = {begin, begin, begin, std::max(keys.near_end, prefix_end)};
      }
      write_query(keys, width, values, cleared, out + (row + q) * width);
    }
  }
}

}  // namespace

void write_dense_mask(std::span<const std::int32_t> cu_seqlens, std::int64_t rows,
                      const AttentionRule& rule, const MaskValues& values, bool cleared,
                      std::byte* out) {
  const std::int64_t width = check_rows(cu_seqlens, rows);
  check_rule(rule, cu_seqlens.size() - 1);
  const auto write_as = [&](auto* typed) {
    write(cu_seqlens, width, rule, values, cleared, typed);
  };
  switch (values.item_size) {
    case 1:
      return write_as(reinterpret_cast<std::uint8_t*>(out));
    case 2:
      return write_as(reinterpret_cast<std::uint16_t*>(out));
    case 4:
      return write_as(reinterpret_cast<std::uint32_t*>(out));
    default:
      return write_as(reinterpret_cast<std::uint64_t*>(out));
  }
}

}  // namespace brimful
