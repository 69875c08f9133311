#include "batch/fill.hpp"

#include <algorithm>
#include <vector>

#include "batch/lay_out.hpp"
#include "batch/read_pieces.hpp"
#include "core/columns.hpp"

namespace brimful {
namespace {

template <class T>
T* column_of(const Layout& layout, std::size_t field, std::byte* slot, const Run& run) {
  return reinterpret_cast<T*>(slot + layout.offset(field)) + run.to;
}

// Tokens begin .. end of a segment and, behind the last of them, slots of its gap.
struct Stretch {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t gap;

  std::int64_t tokens() const { return end - begin; }
};

// What a run of a segment holds of its tokens and of its gap.
Stretch stretch_of(const Segment& segment, const Run& run) {
  const std::int64_t begin = std::min(run.from, segment.length);
  const std::int64_t end = std::min(run.from + run.slots, segment.length);
  return {begin, end, run.slots - (end - begin)};
}

// The labels of tokens begin .. begin + n of a segment, for whichever column wants them.
template <class T>
void write_labels(const Segment& segment, std::int64_t begin, std::int64_t n, std::int64_t* out) {
  const std::byte* values = segment.values + static_cast<std::size_t>(begin) * sizeof(T);
  if (segment.mask == nullptr) {
    columns::widen<T>(values, out, n);
  } else {
    columns::widen_masked<T>(values, segment.mask + begin, kIgnoreLabel, out, n);
  }
}

void write_weights(const Segment& segment, std::int64_t begin, std::int64_t n, float* out) {
  if (segment.mask == nullptr) {
    std::fill_n(out, n, 1.0F);
  } else {
    columns::weigh(segment.mask + begin, out, n);
  }
}

// Writes out[0 .. tokens + gap): write(begin, n, out) for the tokens that are labels, `nothing` for
// what has none: the gap, and a segment's first token or, where labels are shifted, its last one
// unless that carries a label.
template <class T, class Write>
void write_targets(const Segment& segment, const Stretch& stretch, bool shifted, T nothing, T* out,
                   const Write& write) {
  const std::int64_t shift = shifted ? 1 : 0;
  const std::int64_t first = std::max<std::int64_t>(stretch.begin + shift, 1);
  const std::int64_t last = std::min(stretch.end + shift, segment.tokens_to_read());
  const std::int64_t before = first - stretch.begin - shift;  // 1 where the first token is held
  const std::int64_t labels = std::max<std::int64_t>(last - first, 0);
  std::fill_n(out, before, nothing);
  write(first, labels, out + before);
  const std::int64_t written = before + labels;
  std::fill_n(out + written, stretch.tokens() + stretch.gap - written, nothing);
}

template <class T>
void write_piece(const Layout& layout, const Segment& segment, const Run& run, bool weigh_shifted,
                 columns::Ahead& ahead, std::byte* slot) {
  const LayoutConfig& config = layout.config();
  const Stretch stretch = stretch_of(segment, run);
  const std::int64_t tokens = stretch.tokens();
  if (config.fields[0] != Column::kInputIds) ahead.ask(ahead.lines());
  for (std::size_t f = 0; f < config.fields.size(); ++f) {
    switch (config.fields[f]) {
      case Column::kInputIds: {
        auto* out = column_of<std::int64_t>(layout, f, slot, run);
        const auto skipped = static_cast<std::size_t>(stretch.begin) * sizeof(T);
        columns::widen<T>(segment.values + skipped, out, tokens, ahead);
        std::fill_n(out + tokens, stretch.gap, config.pad_token_id);
        break;
      }
      case Column::kLabels:
      case Column::kShiftLabels:
        write_targets(segment, stretch, config.fields[f] == Column::kShiftLabels, kIgnoreLabel,
                      column_of<std::int64_t>(layout, f, slot, run),
                      [&](std::int64_t begin, std::int64_t n, std::int64_t* out) {
                        write_labels<T>(segment, begin, n, out);
                      });
        break;
      case Column::kPositionIds:
        columns::count_up((config.continue_positions ? segment.start : 0) + run.from,
                          column_of<std::int64_t>(layout, f, slot, run), run.slots);
        break;
      case Column::kDocumentIds: {
        auto* out = column_of<std::int32_t>(layout, f, slot, run);
        std::fill_n(out, tokens, segment.id);
        std::fill_n(out + tokens, stretch.gap, -1);
        break;
      }
      case Column::kLossWeights:
        write_targets(segment, stretch, weigh_shifted, 0.0F, column_of<float>(layout, f, slot, run),
                      [&](std::int64_t begin, std::int64_t n, float* out) {
                        write_weights(segment, begin, n, out);
                      });
        break;
    }
  }
}

void write_tail(const Layout& layout, const Segment& segment, const Run& run, std::byte* slot) {
  const LayoutConfig& config = layout.config();
  for (std::size_t f = 0; f < config.fields.size(); ++f) {
    switch (config.fields[f]) {
      case Column::kInputIds:
        std::fill_n(column_of<std::int64_t>(layout, f, slot, run), run.slots, config.pad_token_id);
        break;
      case Column::kLabels:
      case Column::kShiftLabels:
        std::fill_n(column_of<std::int64_t>(layout, f, slot, run), run.slots, kIgnoreLabel);
        break;
      case Column::kPositionIds:
        columns::count_up(run.from, column_of<std::int64_t>(layout, f, slot, run), run.slots);
        break;
      case Column::kDocumentIds:
        std::fill_n(column_of<std::int32_t>(layout, f, slot, run), run.slots, segment.id);
        break;
      case Column::kLossWeights:
        std::fill_n(column_of<float>(layout, f, slot, run), run.slots, 0.0F);
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
  const std::int64_t row = meta.columns * config.zigzag.size;  // all of a row's slots
  const auto each_held_run = [&](const Segment& segment, const auto& write) {
    const bool by_document = config.zigzag.unit == ZigzagUnit::kDocument;
    const std::int64_t unit_begin = by_document ? segment.at : segment.at / row * row;
    each_run(config.zigzag, segment.at, segment.slots, unit_begin,
             by_document ? segment.slots : row, write);
  };
  read_pieces(
      spec, config, reading, segments, meta,
      [&](const Segment& segment, columns::Ahead& ahead) {
        visit_type(segment.store->type, [&](auto type) {
          each_held_run(segment, [&](const Run& run) {
            write_piece<typename decltype(type)::type>(layout, segment, run, weigh_shifted, ahead,
                                                       slot);
          });
        });
      },
      [&](const Segment& segment) {
        each_held_run(segment, [&](const Run& run) { write_tail(layout, segment, run, slot); });
      });
  return meta;
}

}  // namespace brimful
