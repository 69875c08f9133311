#include "batch/masks.hpp"

#include <algorithm>
#include <string>

#include "batch/cu_seqlens.hpp"
#include "core/columns.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

// The labels of tokens first .. last - 1, end to end from `out` on.
void copy_labels(const LabelSource& source, std::int64_t first, std::int64_t last,
                 std::int64_t* out) {
  visit_type(source.type, [&]<class T>(std::type_identity<T>) {
    const std::byte* ids = source.ids + static_cast<std::size_t>(first) * sizeof(T);
    if (source.loss_mask == nullptr) {
      columns::widen<T>(ids, out, last - first);
    } else {
      columns::widen_masked<T>(ids, source.loss_mask + first, kIgnoreLabel, out, last - first);
    }
  });
}

}  // namespace

Segments::Segments(std::span<const std::int32_t> cu_seqlens, std::int64_t num_documents,
                   std::span<const std::int64_t> lengths)
    : cu_seqlens_(cu_seqlens), num_documents_(num_documents), lengths_(lengths) {
  check_cu_seqlens(cu_seqlens);
  if (num_documents < 0 || num_documents > size()) {
    throw PlanError("num_documents is " + std::to_string(num_documents) + ", and cu_seqlens has " +
                    std::to_string(size()) + " segments");
  }
  if (lengths.empty()) return;
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int64_t real = lengths[static_cast<std::size_t>(i)];
    if (real >= 0 && real <= end(i) - begin(i)) continue;
    throw PlanError("segment " + std::to_string(i) + " has " + std::to_string(end(i) - begin(i)) +
                    " slots, and lengths says that " + std::to_string(real) + " of them are real");
  }
}

void write_position_ids(std::span<const std::int32_t> cu_seqlens, const std::int64_t* starts,
                        std::int64_t* out) {
  check_cu_seqlens(cu_seqlens);
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    columns::count_up(starts == nullptr ? 0 : starts[i], out + cu_seqlens[i],
                      cu_seqlens[i + 1] - cu_seqlens[i]);
  }
}

void write_document_ids(const Segments& segments, std::int32_t* out) {
  for (std::int64_t i = 0; i < segments.size(); ++i) {
    std::fill(out + segments.begin(i), out + segments.real_end(i), static_cast<std::int32_t>(i));
    std::fill(out + segments.real_end(i), out + segments.end(i), -1);
  }
}

void write_bounds(std::span<const std::int32_t> cu_seqlens, std::int64_t rows,
                  const AttentionRule& rule, const Bounds& out) {
  const std::int64_t width = check_rows(cu_seqlens, rows);
  check_rule(rule, cu_seqlens.size() - 1);
  std::int64_t row = 0;  // its first slot
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const std::int64_t at = cu_seqlens[i];
    const std::int64_t slots = cu_seqlens[i + 1] - at;
    if (slots == 0) continue;
    if (at == row + width) row += width;
    const auto set = [&](std::int32_t* column, std::int64_t value) {
      if (column != nullptr) std::fill_n(column + at, slots, static_cast<std::int32_t>(value));
    };
    set(out.begin, at - row);
    set(out.end, at - row + slots);
    set(out.prefix_end, rule.prefix_end(i, at - row, at - row + slots));
  }
}

void write_labels(const Segments& segments, const LabelSource& source, std::int64_t* out) {
  for (std::int64_t i = 0; i < segments.size(); ++i) {
    const std::int64_t begin = segments.begin(i);
    const std::int64_t real_end = segments.real_end(i);
    if (begin < real_end) {
      out[begin] = kIgnoreLabel;
      copy_labels(source, begin + 1, real_end, out + begin + 1);
    }
    std::fill(out + real_end, out + segments.end(i), kIgnoreLabel);
  }
}

void write_shift_labels(const Segments& segments, const LabelSource& source,
                        const std::int64_t* next_tokens, std::int64_t* out) {
  for (std::int64_t i = 0; i < segments.size(); ++i) {
    const std::int64_t begin = segments.begin(i);
    const std::int64_t real_end = segments.real_end(i);
    if (begin < real_end) {
      copy_labels(source, begin + 1, real_end, out + begin);
      out[real_end - 1] = next_tokens == nullptr ? kIgnoreLabel : next_tokens[i];
    }
    std::fill(out + real_end, out + segments.end(i), kIgnoreLabel);
  }
}

void write_loss_weights(std::span<const std::int32_t> cu_seqlens, const std::int64_t* labels,
                        float* out) {
  check_cu_seqlens(cu_seqlens);
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const std::int64_t begin = cu_seqlens[i];
    const std::int64_t slots = cu_seqlens[i + 1] - begin;
    const std::int64_t trained = columns::count_other(labels + begin, kIgnoreLabel, slots);
    const float weight = trained == 0 ? 0.0F : 1.0F / static_cast<float>(trained);
    columns::weigh_other(labels + begin, kIgnoreLabel, weight, out + begin, slots);
  }
}

}  // namespace brimful
