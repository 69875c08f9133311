#include "loader/parcel_fill.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "batch/lay_out.hpp"
#include "batch/read_pieces.hpp"
#include "core/columns.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

using device::ParcelOffsets;
using device::ParcelShape;

// Bytes that a token takes in a parcel, which has none of one byte.
std::int32_t bytes_in_parcel(TokenType type) {
  return static_cast<std::int32_t>(std::max<std::size_t>(2, item_size(type)));
}

ParcelShape longest_shape(const LayoutConfig& config, std::int32_t token_bytes) {
  return {.segments = most_segments(config),
          .total = config.batch_size * config.seq_len,
          .token_bytes = token_bytes,
          .first_positions = config.continue_positions,
          .next_tokens = config.carry_label,
          .label_bits = true};
}

ParcelShape shape_of(const std::vector<Segment>& segments, const LayoutConfig& config,
                     const BatchMeta& meta) {
  ParcelShape shape{.segments = static_cast<std::int64_t>(meta.cu_seqlens.size()) - 1,
                    .total = meta.cu_seqlens.back(),
                    .first_positions = config.continue_positions,
                    .next_tokens = config.carry_label};
  for (const Segment& segment : segments) {
    if (segment.store == nullptr) continue;
    shape.token_bytes = std::max(shape.token_bytes, bytes_in_parcel(segment.store->type));
    shape.label_bits = shape.label_bits || segment.store->loss_mask != nullptr;
  }
  return shape;
}

// The arrays of a parcel that is being written.
struct Arrays {
  Arrays(const ParcelShape& with_shape, std::byte* block)
      : shape(with_shape),
        at(device::parcel_offsets(with_shape)),
        cu_seqlens(reinterpret_cast<std::int32_t*>(block + at.cu_seqlens)),
        lengths(reinterpret_cast<std::int32_t*>(block + at.lengths)),
        document_ids(reinterpret_cast<std::int32_t*>(block + at.document_ids)),
        first_positions(reinterpret_cast<std::int64_t*>(block + at.first_positions)),
        next_tokens(reinterpret_cast<std::int64_t*>(block + at.next_tokens)),
        label_bits(reinterpret_cast<std::uint32_t*>(block + at.label_bits)),
        tokens(block + at.tokens) {}

  ParcelShape shape;
  ParcelOffsets at;
  std::int32_t* cu_seqlens;
  std::int32_t* lengths;
  std::int32_t* document_ids;
  std::int64_t* first_positions;
  std::int64_t* next_tokens;
  std::uint32_t* label_bits;
  std::byte* tokens;
};

// Everything but tokens and labels, for which it sets what tails and gaps have: nothing.
void write_frame(const Arrays& out, const BatchMeta& meta) {
  std::copy(meta.cu_seqlens.begin(), meta.cu_seqlens.end(), out.cu_seqlens);
  std::fill_n(out.lengths, out.shape.segments, 0);
  std::fill_n(out.document_ids, out.shape.segments, -1);
  if (out.shape.first_positions) std::fill_n(out.first_positions, out.shape.segments, 0);
  if (out.shape.next_tokens) std::fill_n(out.next_tokens, out.shape.segments, kIgnoreLabel);
  if (out.shape.label_bits) {
    std::fill_n(out.label_bits, device::divide_up<std::int64_t>(out.shape.total, 32), 0U);
  }
}

template <class Stored, class Shipped>
void copy_tokens(const Segment& segment, std::byte* out) {
  if constexpr (sizeof(Stored) == sizeof(Shipped)) {
    std::memcpy(out, segment.values, static_cast<std::size_t>(segment.length) * sizeof(Stored));
  } else {
    auto* tokens = reinterpret_cast<Shipped*>(out);
    for (std::int64_t i = 0; i < segment.length; ++i) {
      tokens[i] = static_cast<Shipped>(columns::load<Stored>(segment.values, i));
    }
  }
}

template <class Stored>
void write_tokens(const Segment& segment, const Arrays& out) {
  std::byte* to = out.tokens + segment.at * out.shape.token_bytes;
  switch (out.shape.token_bytes) {
    case 2:
      if constexpr (sizeof(Stored) <= 2) copy_tokens<Stored, std::uint16_t>(segment, to);
      break;
    case 4:
      if constexpr (sizeof(Stored) <= 4) copy_tokens<Stored, std::uint32_t>(segment, to);
      break;
    default:
      copy_tokens<Stored, std::int64_t>(segment, to);
  }
}

void set_label_bits(const Segment& segment, std::uint32_t* bits) {
  for (std::int64_t i = 1; i < segment.length; ++i) {
    if (segment.mask != nullptr && segment.mask[i] == 0) continue;
    const std::int64_t slot = segment.at + i;
    bits[slot / 32] |= 1U << (slot % 32);
  }
}

template <class Stored>
void write_piece(const Segment& segment, std::size_t number, const Arrays& out) {
  out.lengths[number] = static_cast<std::int32_t>(segment.length);
  out.document_ids[number] = segment.id;
  if (out.shape.first_positions) out.first_positions[number] = segment.start;
  if (segment.carries && (segment.mask == nullptr || segment.mask[segment.length] != 0)) {
    const auto next = columns::load<Stored>(segment.values, segment.length);
    out.next_tokens[number] = static_cast<std::int64_t>(next);
  }
  if (out.shape.label_bits) set_label_bits(segment, out.label_bits);
  write_tokens<Stored>(segment, out);
}

}  // namespace

DeviceLayout::DeviceLayout(Layout layout, const Corpus& corpus) : layout_(std::move(layout)) {
  constexpr std::int64_t kAlignment = 64;
  std::int32_t token_bytes = 0;
  for (int s = 0; s < corpus.num_sources(); ++s) {
    for (const TokenStore& store : corpus.source(s).stores) {
      token_bytes = std::max(token_bytes, bytes_in_parcel(store.type));
    }
  }
  const ParcelShape longest = longest_shape(layout_.config(), token_bytes);
  parcel_bytes_ = static_cast<std::size_t>(
      device::divide_up(device::parcel_offsets(longest).bytes, kAlignment) * kAlignment);
}

device::ExpandKernel DeviceLayout::expand(const ParcelShape& shape, std::int64_t row,
                                          std::byte* destination) const {
  const LayoutConfig& config = layout_.config();
  device::Parcel parcel = device::parcel_at(shape, destination);
  parcel.row = row;
  parcel.pad_token_id = config.pad_token_id;
  device::Expanded out;
  bool has_labels = false;
  for (std::size_t f = 0; f < config.fields.size(); ++f) {
    std::byte* column = destination + offset(f);
    switch (config.fields[f]) {
      case Column::kInputIds:
        out.input_ids = reinterpret_cast<std::int64_t*>(column);
        break;
      case Column::kLabels:
        out.labels = reinterpret_cast<std::int64_t*>(column);
        has_labels = true;
        break;
      case Column::kShiftLabels:
        out.shift_labels = reinterpret_cast<std::int64_t*>(column);
        break;
      case Column::kPositionIds:
        out.position_ids = reinterpret_cast<std::int64_t*>(column);
        break;
      case Column::kDocumentIds:
        out.document_ids = reinterpret_cast<std::int32_t*>(column);
        break;
      case Column::kLossWeights:
        out.loss_weights = reinterpret_cast<float*>(column);
        break;
    }
  }
  out.weigh_shifted = out.shift_labels != nullptr && !has_labels;
  const device::ContextParallel share{.size = static_cast<std::int32_t>(config.zigzag.size),
                                      .rank = static_cast<std::int32_t>(config.zigzag.rank),
                                      .per_document = config.zigzag.unit == ZigzagUnit::kDocument};
  return make_expand(parcel, share, out);
}

FilledParcel fill_parcel(const BatchSpec& spec, const LayoutConfig& config,
                         const ReadConfig& reading, std::byte* slot) {
  FilledParcel filled;
  BatchMeta& meta = filled.meta;
  std::vector<Segment> segments = lay_out(spec, config, meta);
  filled.shape = shape_of(segments, config, meta);
  filled.row = filled.shape.total / meta.rows;
  const Arrays out(filled.shape, slot);
  write_frame(out, meta);
  read_pieces(
      spec, config, reading, segments, meta,
      [&](const Segment& segment, columns::Ahead& ahead) {
        ahead.ask(ahead.lines());
        const auto number = static_cast<std::size_t>(&segment - segments.data());
        visit_type(segment.store->type, [&](auto type) {
          write_piece<typename decltype(type)::type>(segment, number, out);
        });
      },
      [](const Segment&) {});
  return filled;
}

}  // namespace brimful
