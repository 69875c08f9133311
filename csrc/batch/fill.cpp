#include "batch/fill.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "core/columns.hpp"
#include "core/error.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

// One stretch of tokens of one document, or (store == nullptr) a tail of pad tokens.
struct Segment {
  const TokenStore* store = nullptr;
  std::int64_t first = 0;             // token of the store
  const std::byte* values = nullptr;  // of the first token, once it is read
  const std::uint8_t* mask = nullptr;
  std::int64_t at = 0;  // place in the flattened batch
  std::int64_t length = 0;
  std::int64_t document = -1;
  std::int64_t start = 0;  // the first token's place in its document
  std::int32_t id = -1;    // document_ids
  const DocumentRef* ref = nullptr;
};

Segment piece_segment(const WindowPlan& window, std::size_t piece, std::int64_t at,
                      std::int32_t id) {
  const Packing& packing = window.packing;
  const DocumentRef& ref = window.refs[piece];
  return {.store = ref.store,
          .first = ref.extent.begin + packing.starts[piece],
          .at = at,
          .length = packing.lengths[piece],
          .document = packing.documents[piece],
          .start = packing.starts[piece],
          .id = id,
          .ref = &ref};
}

StoredPiece stored(const Segment& segment) {
  const std::int64_t effective = segment.mask == nullptr
                                     ? segment.length - 1
                                     : columns::count_set(segment.mask + 1, segment.length - 1);
  return {*segment.ref,   segment.document, segment.start, segment.length,
          segment.values, segment.mask,     effective};
}

// Lays out the segments of a batch, without touching a token.
std::vector<Segment> lay_out(const BatchSpec& spec, const LayoutConfig& config, BatchMeta& meta) {
  std::vector<Segment> segments;
  std::int64_t at = 0;
  const auto add_tail = [&](std::int64_t end) {
    segments.push_back({.at = at, .length = end - at});
    at = end;
  };
  std::int32_t id = 0;
  for (const BinRef& row : spec.rows) {
    const Packing& packing = row.window->packing;
    const auto bin = static_cast<std::size_t>(row.bin);
    const std::int64_t row_end = at + spec.width;
    if (!config.varlen) id = 0;
    for (auto i = packing.bin_offsets[bin]; i < packing.bin_offsets[bin + 1]; ++i) {
      segments.push_back(piece_segment(*row.window, static_cast<std::size_t>(i), at, id++));
      at += segments.back().length;
      meta.num_tokens += segments.back().length;
      meta.attention_work += segments.back().length * segments.back().length;
    }
    if (config.keep_tail && at < row_end) add_tail(row_end);
  }
  if (spec.rows.empty()) add_tail(config.keep_tail ? spec.width : 1);  // the dummy row
  const auto num_rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(spec.rows.size()));
  meta.rows = config.varlen ? 1 : num_rows;
  meta.columns = at / meta.rows;
  meta.cu_seqlens.reserve(segments.size() + 1);
  meta.documents.reserve(segments.size());
  meta.starts.reserve(segments.size());
  meta.cu_seqlens.push_back(0);
  for (const Segment& segment : segments) {
    meta.cu_seqlens.push_back(static_cast<std::int32_t>(segment.at + segment.length));
    meta.documents.push_back(segment.document);
    meta.starts.push_back(segment.start);
    meta.max_seqlen = std::max(meta.max_seqlen, segment.length);
  }
  return segments;
}

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

// Turns a segment into a tail, whose place it fills.
void put_aside(Segment& segment, std::size_t number, BatchMeta& meta) {
  segment = {.at = segment.at, .length = segment.length};
  meta.documents[number] = segment.document;
  meta.starts[number] = segment.start;
  meta.num_tokens -= segment.length;
  meta.attention_work -= segment.length * segment.length;
}

[[noreturn]] void throw_wrong_count(std::int64_t found, std::int64_t expected) {
  throw FormatError("a loss mask has " + std::to_string(found) +
                    " trained tokens in this batch where its stored counts say " +
                    std::to_string(expected) + "; write the loss masks (*.loss.bin) again");
}

}  // namespace

BatchMeta fill(const BatchSpec& spec, const Layout& layout, const ReadConfig& reading,
               std::byte* slot) {
  const LayoutConfig& config = layout.config();
  BatchMeta meta;
  std::vector<Segment> segments = lay_out(spec, config, meta);
  TokenReader reader(reading);
  const auto asks_for = [&](Column column) {
    return std::find(config.fields.begin(), config.fields.end(), column) != config.fields.end();
  };
  const bool weigh_shifted = asks_for(Column::kShiftLabels) && !asks_for(Column::kLabels);

  // Volatile: read again after a jump out of the loop.
  volatile std::size_t at = 0;
  std::int64_t num_items = 0;
  std::int64_t planned_items = 0;
  const bool read = read_guarded([&] {
    for (std::size_t s = 0; s < segments.size(); ++s) {
      at = s;
      Segment& segment = segments[s];
      if (s + 1 < segments.size() && segments[s + 1].store != nullptr) {
        reader.expect(*segments[s + 1].store, segments[s + 1].first, segments[s + 1].length);
      }
      if (segment.store == nullptr) {
        write_tail(layout, segment, slot);
        continue;
      }
      segment.values = reader.tokens(*segment.store, segment.first, segment.length);
      segment.mask = reader.loss_mask(*segment.store, segment.first, segment.length);
      const StoredPiece piece = stored(segment);
      const auto bad = inspect(piece, config.vocab_size, reader);
      planned_items += piece.effective_tokens;
      if (bad) {
        meta.bad.push_back(*bad);
        reader.copied(*segment.store, segment.first, segment.length, 0);  // is the file to blame?
        put_aside(segment, s, meta);
        write_tail(layout, segment, slot);
        continue;
      }
      visit_type(segment.store->type, [&](auto type) {
        using T = typename decltype(type)::type;
        write_piece<T>(layout, segment, weigh_shifted, slot);
        const auto last_token = columns::load<T>(segment.values, segment.length - 1);
        reader.copied(*segment.store, segment.first, segment.length,
                      static_cast<std::int64_t>(last_token));
      });
      num_items += piece.effective_tokens;
    }
  });
  if (!read) throw_read_error(*segments[at].store, segments[at].first);
  reader.check_files(segments.size(), [&](std::size_t s) {
    return std::tuple(segments[s].store, segments[s].first, segments[s].length);
  });
  if (!meta.bad.empty() && !config.quarantine) throw_bad_piece(meta.bad[0], config.vocab_size);
  meta.num_items = num_items;
  meta.read_time = reader.read_time();
  if (planned_items != spec.delta.rank.effective_tokens) {
    throw_wrong_count(planned_items, spec.delta.rank.effective_tokens);
  }
  return meta;
}

}  // namespace brimful
