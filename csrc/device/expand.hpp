// Expands a parcel into the columns of a batch: the device's form of fill.cpp, equal to it bit for
// bit. A thread makes a slot, and every column of it, by itself.
#pragma once

#include <cstdint>

#include "device/grid.hpp"
#include "device/host_device.hpp"
#include "device/parcel.hpp"
#include "device/segment_search.hpp"

namespace brimful::device {

inline constexpr std::int64_t kNoLabel = -100;

// The x-th slot that this rank has of a stretch of `length` slots from `begin` on.
BRIMFUL_HD inline std::int64_t zigzag(const ContextParallel& cp, std::int64_t begin,
                                      std::int64_t length, std::int64_t x) {
  const std::int64_t half = length / (2 * static_cast<std::int64_t>(cp.size));
  const std::int64_t skipped =
      x < half ? cp.rank : 2 * (static_cast<std::int64_t>(cp.size) - 1) - cp.rank;
  return begin + x + half * skipped;
}

// A slot of the batch in the segment that local slot `local` is in. Rises with `local`, so that
// neighbours are found in neighbouring segments.
BRIMFUL_HD inline std::int64_t slot_in_segment(const Parcel& parcel, const ContextParallel& cp,
                                               std::int64_t local) {
  if (cp.size == 1) return local;
  // The parts of earlier segments lie before this one's as the segments do: scaled by the size.
  if (cp.per_document) return local * cp.size;
  const std::int64_t width = parcel.row / cp.size;
  const std::int64_t row = local / width;
  return zigzag(cp, row * parcel.row, parcel.row, local - row * width);
}

BRIMFUL_HD inline std::int64_t token_at(const Parcel& parcel, std::int64_t slot) {
  switch (parcel.token_bytes) {
    case 2:
      return reinterpret_cast<const std::uint16_t*>(parcel.tokens)[slot];
    case 4:
      return reinterpret_cast<const std::uint32_t*>(parcel.tokens)[slot];
    default:
      return reinterpret_cast<const std::int64_t*>(parcel.tokens)[slot];
  }
}

BRIMFUL_HD inline bool label_bit(const Parcel& parcel, std::int64_t slot) {
  return parcel.label_bits == nullptr || (parcel.label_bits[slot / 32] >> (slot % 32) & 1U) != 0;
}

// Writes every column of local slot `local`, which lies in `segment`.
BRIMFUL_HD inline void expand_slot(const Parcel& parcel, const ContextParallel& cp,
                                   const Expanded& out, std::int64_t local, std::int32_t segment) {
  const std::int64_t begin = parcel.cu_seqlens[segment];
  const std::int64_t end = parcel.cu_seqlens[segment + 1];
  const std::int64_t slot = cp.size > 1 && cp.per_document
                                ? zigzag(cp, begin, end - begin, local - begin / cp.size)
                                : slot_in_segment(parcel, cp, local);
  const std::int64_t place = slot - begin;
  const std::int32_t document = parcel.document_ids[segment];
  const std::int64_t length = document < 0 ? 0 : parcel.lengths[segment];  // of real tokens
  const bool real = place < length;
  const bool labelled = real && place > 0 && label_bit(parcel, slot);

  const std::int64_t token = real ? token_at(parcel, slot) : parcel.pad_token_id;
  if (out.input_ids != nullptr) out.input_ids[local] = token;
  if (out.labels != nullptr) out.labels[local] = labelled ? token : kNoLabel;
  if (out.position_ids != nullptr) {
    const std::int64_t first =
        parcel.first_positions == nullptr ? 0 : parcel.first_positions[segment];
    out.position_ids[local] = first + place;
  }
  if (out.document_ids != nullptr) out.document_ids[local] = real ? document : -1;

  bool weighed = labelled;
  if (out.shift_labels != nullptr || out.weigh_shifted) {
    std::int64_t next = kNoLabel;
    if (place + 1 < length) {
      if (label_bit(parcel, slot + 1)) next = token_at(parcel, slot + 1);
    } else if (place + 1 == length && parcel.next_tokens != nullptr) {
      next = parcel.next_tokens[segment];
    }
    if (out.shift_labels != nullptr) out.shift_labels[local] = next;
    if (out.weigh_shifted) weighed = next != kNoLabel;
  }
  if (out.loss_weights != nullptr) out.loss_weights[local] = weighed ? 1.0F : 0.0F;

  if (out.segment_begin != nullptr || out.segment_end != nullptr) {
    const std::int64_t row_begin = parcel.row == parcel.total ? 0 : begin / parcel.row * parcel.row;
    if (out.segment_begin != nullptr) {
      out.segment_begin[local] = static_cast<std::int32_t>(begin - row_begin);
    }
    if (out.segment_end != nullptr) {
      out.segment_end[local] = static_cast<std::int32_t>(end - row_begin);
    }
  }
}

// A block makes a tile of neighbouring slots. Its threads first find the segments of the tile's
// first and last slot together; then each looks up its own between them, which are few.
// Neighbouring threads make neighbouring slots, so that a warp's stores are whole lines.
struct ExpandKernel {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kTile = 512;

  struct Shared {
    SegmentRange first[2];  // of the round before, of this one, and so on by turns
    SegmentRange last[2];
  };

  Parcel parcel;
  ContextParallel cp;
  Expanded out;
  std::int64_t slots = 0;  // of this rank: parcel.total / cp.size
  int rounds = 0;          // rounds_to_find(parcel.segments, kThreads)

  Grid grid() const { return {divide_up(slots, kTile), kThreads}; }

  BRIMFUL_HD int phases() const { return rounds + 1; }

  BRIMFUL_HD void run(int phase, std::int64_t block, int thread, Shared& shared) const {
    const std::int64_t begin = block * kTile;
    const std::int64_t end = smaller(begin + kTile, slots);
    const SegmentRange all{0, static_cast<std::int32_t>(parcel.segments)};
    const SegmentRange first = phase == 0 ? all : shared.first[phase % 2];
    const SegmentRange last = phase == 0 ? all : shared.last[phase % 2];
    if (phase < rounds) {
      const int next = (phase + 1) % 2;
      narrow(parcel.cu_seqlens, slot_in_segment(parcel, cp, begin), thread, kThreads, first,
             &shared.first[next]);
      narrow(parcel.cu_seqlens, slot_in_segment(parcel, cp, end - 1), thread, kThreads, last,
             &shared.last[next]);
      return;
    }
    for (std::int64_t local = begin + thread; local < end; local += kThreads) {
      const std::int64_t slot = slot_in_segment(parcel, cp, local);
      expand_slot(parcel, cp, out, local,
                  find_segment(parcel.cu_seqlens, slot, {first.begin, last.end}));
    }
  }
};

}  // namespace brimful::device
