#include "batch/fill.hpp"

#include <algorithm>
#include <vector>

#include "batch/lay_out.hpp"
#include "batch/read_pieces.hpp"
#include "core/columns.hpp"

namespace brimful {
namespace {

template <class T>
T* column_of(const Layout& layout, std::size_t field, std::byte* slot, const Segment& segment) {
  return reinterpret_cast<T*>(slot + layout.offset(field)) + segment.at;
}

// The labels of tokens 1 .. n-1 of a segment, for whichever column wants them.
template <class T>
void write_labels(const Segment& segment, std::int64_t* out) {
  const std::byte* values = segment.values + sizeof(T);
  if (segment.mask == nullptr) {
    columns::widen<T>(values, out, segment.length - 1);
  } else {
    columns::widen_masked<T>(values, segment.mask + 1, kIgnoreLabel, out, segment.length - 1);
  }
}

template <class T>
void write_piece(const Layout& layout, const Segment& segment, bool weigh_shifted,
                 std::byte* slot) {
  const LayoutConfig& config = layout.config();
  const std::int64_t last = segment.length - 1;
  for (std::size_t f = 0; f < config.fields.size(); ++f) {
    switch (config.fields[f]) {
      case Column::kInputIds:
        columns::widen<T>(segment.values, column_of<std::int64_t>(layout, f, slot, segment),
                          segment.length);
        break;
      case Column::kLabels: {
        auto* out = column_of<std::int64_t>(layout, f, slot, segment);
        out[0] = kIgnoreLabel;
        write_labels<T>(segment, out + 1);
        break;
      }
      case Column::kShiftLabels: {
        auto* out = column_of<std::int64_t>(layout, f, slot, segment);
        write_labels<T>(segment, out);
        out[last] = kIgnoreLabel;
        break;
      }
      case Column::kPositionIds:
        columns::count_up(config.continue_positions ? segment.start : 0,
                          column_of<std::int64_t>(layout, f, slot, segment), segment.length);
        break;
      case Column::kDocumentIds:
        std::fill_n(column_of<std::int32_t>(layout, f, slot, segment), segment.length, segment.id);
        break;
      case Column::kLossWeights: {
        auto* out = column_of<float>(layout, f, slot, segment);
        out[weigh_shifted ? last : 0] = 0;
        out += weigh_shifted ? 0 : 1;
        if (segment.mask == nullptr) {
          std::fill_n(out, last, 1.0F);
        } else {
          columns::weigh(segment.mask + 1, out, last);
        }
        break;
      }
    }
  }
}

void write_tail(const Layout& layout, const Segment& segment, std::byte* slot) {
  const LayoutConfig& config = layout.config();
  for (std::size_t f = 0; f < config.fields.size(); ++f) {
    switch (config.fields[f]) {
      case Column::kInputIds:
        std::fill_n(column_of<std::int64_t>(layout, f, slot, segment), segment.length,
                    config.pad_token_id);
        break;
      case Column::kLabels:
      case Column::kShiftLabels:
        std::fill_n(column_of<std::int64_t>(layout, f, slot, segment), segment.length,
                    kIgnoreLabel);
        break;
      case Column::kPositionIds:
        columns::count_up(0, column_of<std::int64_t>(layout, f, slot, segment), segment.length);
        break;
      case Column::kDocumentIds:
        std::fill_n(column_of<std::int32_t>(layout, f, slot, segment), segment.length, segment.id);
        break;
      case Column::kLossWeights:
        std::fill_n(column_of<float>(layout, f, slot, segment), segment.length, 0.0F);
        break;
    }
  }
}

}  // namespace

BatchMeta fill(const BatchSpec& spec, const Layout& layout, const ReadConfig& reading,
               std::byte* slot) {
  const LayoutConfig& config = layout.config();
  BatchMeta meta;
  std::vector<Segment> segments = lay_out(spec, config, meta);
  const auto asks_for = [&](Column column) {
    return std::find(config.fields.begin(), config.fields.end(), column) != config.fields.end();
  };
  const bool weigh_shifted = asks_for(Column::kShiftLabels) && !asks_for(Column::kLabels);
  read_pieces(
      spec, config, reading, segments, meta,
      [&](const Segment& segment) {
        visit_type(segment.store->type, [&](auto type) {
          write_piece<typename decltype(type)::type>(layout, segment, weigh_shifted, slot);
        });
      },
      [&](const Segment& segment) { write_tail(layout, segment, slot); });
  return meta;
}

}  // namespace brimful
