#include "batch/lay_out.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/round_up.hpp"

namespace brimful {
namespace {

Segment piece_segment(const WindowPlan& window, std::size_t piece, std::int64_t at,
                      const LayoutConfig& config, std::int32_t id) {
  const Packing& packing = window.packing;
  const DocumentRef& ref = window.refs[piece];
  return {.store = ref.store,
          .first = ref.extent.begin + packing.starts[piece],
          .at = at,
          .length = packing.lengths[piece],
          .slots = round_up(packing.lengths[piece], config.align),
          .carries = config.carry_label && is_cut(window, piece),
          .document = packing.documents[piece],
          .start = packing.starts[piece],
          .id = id,
          .ref = &ref};
}

Segment tail(std::int64_t at, std::int64_t slots) {
  return {.at = at, .length = slots, .slots = slots};
}

}  // namespace

std::vector<Segment> lay_out(const BatchSpec& spec, const LayoutConfig& config, BatchMeta& meta) {
  std::vector<Segment> segments;
  std::int64_t at = 0;
  const auto add_tail = [&](std::int64_t end) {
    segments.push_back(tail(at, end - at));
    at = end;
  };
  std::int32_t id = 0;
  for (const BinRef& row : spec.rows) {
    const Packing& packing = row.window->packing;
    const auto bin = static_cast<std::size_t>(row.bin);
    const std::int64_t row_end = at + spec.width;
    if (!config.varlen) id = 0;
    for (auto i = packing.bin_offsets[bin]; i < packing.bin_offsets[bin + 1]; ++i) {
      segments.push_back(piece_segment(*row.window, static_cast<std::size_t>(i), at, config, id++));
      at += segments.back().slots;
      meta.num_tokens += segments.back().length;
      meta.attention_work += segments.back().length * segments.back().length;
    }
    if (config.keep_tail && at < row_end) add_tail(row_end);
  }
  if (spec.rows.empty()) add_tail(config.keep_tail ? spec.width : config.align);  // the dummy row
  const auto num_rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(spec.rows.size()));
  meta.rows = config.varlen ? 1 : num_rows;
  meta.columns = at / meta.rows / config.zigzag.size;
  const std::size_t entries = config.max_segments
                                  ? static_cast<std::size_t>(most_segments(config)) + 1
                                  : segments.size() + 1;
  meta.cu_seqlens.reserve(entries);
  meta.lengths.reserve(segments.size());
  meta.documents.reserve(segments.size());
  meta.starts.reserve(segments.size());
  meta.cu_seqlens.push_back(0);
  for (const Segment& segment : segments) {
    meta.cu_seqlens.push_back(static_cast<std::int32_t>(segment.at + segment.slots));
    meta.lengths.push_back(segment.length);
    meta.documents.push_back(segment.document);
    meta.starts.push_back(segment.start);
    meta.max_seqlen = std::max(meta.max_seqlen, segment.slots);
  }
  if (meta.cu_seqlens.size() > entries) {
    throw PlanError("a batch has " + std::to_string(segments.size()) +
                    " segments, and cu_seqlens room for " + std::to_string(entries - 1));
  }
  meta.cu_seqlens.resize(entries, static_cast<std::int32_t>(at));
  return segments;
}

void put_aside(Segment& segment, std::size_t number, BatchMeta& meta) {
  meta.num_tokens -= segment.length;
  meta.attention_work -= segment.length * segment.length;
  segment = tail(segment.at, segment.slots);
  meta.lengths[number] = segment.length;
  meta.documents[number] = segment.document;
  meta.starts[number] = segment.start;
}

}  // namespace brimful
