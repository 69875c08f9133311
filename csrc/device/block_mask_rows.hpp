// The block mask of documents as FlexAttention wants it, a row or a column of blocks at a time and
// independent of all others: nothing is transposed, counted over or scanned. csrc/batch holds the
// form for one core, which walks all rows at once.
//
// A query may see the keys of its document that are not behind it and, with a window, fewer than
// `window` before it; with a prefix also all of the document's first prefix_lengths tokens. A block
// is full where every one of its pairs may be seen, partial where some may. A last block that is
// cut off is never full.
#pragma once

#include <cstdint>

#include "device/grid.hpp"
#include "device/host_device.hpp"
#include "device/segment_search.hpp"

namespace brimful::device {

struct BlockMaskProblem {
  const std::int32_t* cu_seqlens = nullptr;      // [segments + 1] from 0 to rows * length, over the
                                                 // flattened batch: a row's end is a segment's end
  const std::int64_t* prefix_lengths = nullptr;  // [segments] or null
  std::int64_t segments = 0;
  std::int64_t rows = 1;    // of the batch
  std::int64_t length = 0;  // slots of a row
  std::int64_t block_q = 128;
  std::int64_t block_kv = 128;
  std::int64_t window = 0;  // keys; 0: no limit

  BRIMFUL_HD std::int64_t q_blocks() const { return divide_up(length, block_q); }
  BRIMFUL_HD std::int64_t kv_blocks() const { return divide_up(length, block_kv); }
};

// Counts and block numbers of one side: [rows, R] and [rows, R, C] for kv, where R and C are the
// blocks of queries and of keys; [rows, C] and [rows, C, R] for q. Numbers past a count are 0.
struct BlockLists {
  std::int32_t* num_blocks = nullptr;
  std::int32_t* indices = nullptr;
  std::int32_t* full_num_blocks = nullptr;
  std::int32_t* full_indices = nullptr;
};

// What a mask function looks up for a query, int32 [rows, length], in slots of its row: where its
// document begins, and where the document's prefix ends. Null where it is not asked for.
struct QueryBounds {
  std::int32_t* begin = nullptr;
  std::int32_t* prefix_end = nullptr;
};

// Numbers begin .. end - 1, none where end is not after begin.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

BRIMFUL_HD inline Span overlap(Span a, Span b) {
  return {larger(a.begin, b.begin), smaller(a.end, b.end)};
}

// One list of block numbers, of which this lane writes every lanes-th.
struct LaneList {
  std::int32_t* indices;
  std::int64_t count;
  int lane;
  int lanes;

  BRIMFUL_HD void add(Span span) {
    if (span.end <= span.begin) return;
    const std::int64_t more = span.end - span.begin;
    for (std::int64_t i = lane; i < more; i += lanes) {
      indices[count + i] = static_cast<std::int32_t>(span.begin + i);
    }
    count += more;
  }

  BRIMFUL_HD void clear_rest(std::int64_t room) const {
    for (std::int64_t i = count + lane; i < room; i += lanes) indices[i] = 0;
  }
};

// The lists of one row or column of blocks. Blocks come in ascending order and some twice, at the
// seam of two documents or of a prefix; the first time counts.
struct LaneLists {
  LaneList partial;
  LaneList full;
  std::int64_t next = 0;  // blocks before it are written

  BRIMFUL_HD LaneLists(const BlockLists& out, std::int64_t at, std::int64_t room, int lane,
                       int lanes)
      : partial{out.indices + at * room, 0, lane, lanes},
        full{out.full_indices + at * room, 0, lane, lanes} {}

  // Adds the blocks of `met`: to the full ones where they are in full_1 or full_2, which ascend and
  // do not overlap, and to the partial ones elsewhere.
  BRIMFUL_HD void add(Span met, Span full_1, Span full_2) {
    met.begin = larger(met.begin, next);
    if (met.end <= met.begin) return;
    next = met.end;
    for (int i = 0; i < 2; ++i) {
      const Span whole = overlap(i == 0 ? full_1 : full_2, met);
      if (whole.end <= whole.begin) continue;
      partial.add({met.begin, whole.begin});
      full.add(whole);
      met.begin = whole.end;
    }
    partial.add(met);
  }

  BRIMFUL_HD void finish(const BlockLists& out, std::int64_t at, std::int64_t room) const {
    if (partial.lane == 0) {
      out.num_blocks[at] = static_cast<std::int32_t>(partial.count);
      out.full_num_blocks[at] = static_cast<std::int32_t>(full.count);
    }
    partial.clear_rest(room);
    full.clear_rest(room);
  }
};

// A document in its row of the batch. Whatever cu_seqlens holds, it lies inside the row.
struct MaskedDocument {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t prefix_end;
};

BRIMFUL_HD inline MaskedDocument masked_document(const BlockMaskProblem& problem,
                                                 std::int64_t row_begin, std::int64_t segment) {
  const auto inside = [&](std::int64_t slot) {
    return smaller(larger<std::int64_t>(slot - row_begin, 0), problem.length);
  };
  const std::int64_t begin = inside(problem.cu_seqlens[segment]);
  const std::int64_t end = inside(problem.cu_seqlens[segment + 1]);
  const std::int64_t prefix = problem.prefix_lengths == nullptr
                                  ? 0
                                  : larger<std::int64_t>(problem.prefix_lengths[segment], 0);
  return {begin, end, smaller(begin + prefix, end)};
}

// Keys that a query may look back over, itself included: all of a row without a window.
BRIMFUL_HD inline std::int64_t reach(const BlockMaskProblem& problem) {
  return problem.window > 0 ? smaller(problem.window, problem.length) : problem.length;
}

// Queries q_begin .. q_end - 1 of a row of blocks, which meet the document.
BRIMFUL_HD inline void add_to_row(const BlockMaskProblem& problem, const MaskedDocument& document,
                                  Span queries, LaneLists& lists) {
  const std::int64_t kv = problem.block_kv;
  const std::int64_t window = reach(problem);
  const Span seen{larger(document.begin, queries.begin), smaller(document.end, queries.end)};
  if (seen.end <= seen.begin) return;
  Span prefix_full{0, 0};
  Span causal_full{0, 0};
  if (document.begin <= queries.begin && queries.begin + problem.block_q <= document.end) {
    const Span whole{divide_up(document.begin, kv), document.end / kv};
    const std::int64_t last = queries.begin + problem.block_q - 1;  // the query that sees least far
    prefix_full = overlap(whole, {0, document.prefix_end / kv});
    causal_full = overlap(whole, {larger(prefix_full.end, whole.begin), (queries.begin + 1) / kv});
    // Behind the prefix, keys from the block's first on are in the last query's window.
    if (document.prefix_end <= last - window) {
      causal_full.begin = larger(causal_full.begin, divide_up(last - window + 1, kv));
    }
  }
  if (document.prefix_end > document.begin) {
    lists.add({document.begin / kv, (document.prefix_end - 1) / kv + 1}, prefix_full, causal_full);
  }
  const std::int64_t first_key = larger(document.begin, seen.begin - window + 1);
  lists.add({first_key / kv, (seen.end - 1) / kv + 1}, prefix_full, causal_full);
}

// Keys begin .. end - 1 of a column of blocks, which meet the document.
BRIMFUL_HD inline void add_to_column(const BlockMaskProblem& problem,
                                     const MaskedDocument& document, Span keys, LaneLists& lists) {
  const std::int64_t q = problem.block_q;
  const std::int64_t window = reach(problem);
  const Span seen{larger(document.begin, keys.begin), smaller(document.end, keys.end)};
  if (seen.end <= seen.begin) return;
  Span full{0, 0};
  if (document.begin <= keys.begin && keys.begin + problem.block_kv <= document.end) {
    const std::int64_t end = keys.begin + problem.block_kv;
    full = {divide_up(document.begin, q), document.end / q};
    if (end > document.prefix_end) {
      // Queries that are not before the last key and have the first one behind the prefix in reach.
      const std::int64_t first = larger(keys.begin, document.prefix_end);
      full = overlap(full, {divide_up(end - 1, q), (first + window) / q});
    }
  }
  Span rows{document.begin / q, (document.end - 1) / q + 1};  // everyone sees a key of the prefix
  if (seen.begin >= document.prefix_end) {
    rows = {seen.begin / q, smaller(document.end - 1, seen.end - 1 + window - 1) / q + 1};
  }
  lists.add(rows, full, {0, 0});
}

// The bounds of those queries of a document that a row of blocks holds.
BRIMFUL_HD inline void write_bounds(const QueryBounds& bounds, const MaskedDocument& document,
                                    Span queries, std::int64_t row_begin, int lane, int lanes) {
  const Span seen = overlap({document.begin, document.end}, queries);
  for (std::int64_t query = seen.begin + lane; query < seen.end; query += lanes) {
    if (bounds.begin != nullptr) {
      bounds.begin[row_begin + query] = static_cast<std::int32_t>(document.begin);
    }
    if (bounds.prefix_end != nullptr) {
      bounds.prefix_end[row_begin + query] = static_cast<std::int32_t>(document.prefix_end);
    }
  }
}

// A block of threads a row and a column of blocks, of every row of the batch: all rows first. The
// threads find the first document together and share the writing.
struct BlockMaskKernel {
  static constexpr int kThreads = 128;

  struct Shared {
    SegmentRange range[2];  // of the round before, of this one, and so on by turns
  };

  BlockMaskProblem problem;
  BlockLists kv;
  BlockLists q;
  QueryBounds bounds;
  int rounds = 0;  // rounds_to_find(problem.segments, kThreads)

  Grid grid() const {
    return {problem.rows * (problem.q_blocks() + problem.kv_blocks()), kThreads};
  }

  BRIMFUL_HD int phases() const { return rounds + 1; }

  BRIMFUL_HD void run(int phase, std::int64_t block, int thread, Shared& shared) const {
    const std::int64_t all_rows = problem.rows * problem.q_blocks();
    const bool is_row = block < all_rows;
    const std::int64_t blocks = is_row ? problem.q_blocks() : problem.kv_blocks();
    const std::int64_t size = is_row ? problem.block_q : problem.block_kv;
    const std::int64_t list = is_row ? block : block - all_rows;
    const std::int64_t row = list / blocks;
    const std::int64_t row_begin = row * problem.length;
    const std::int64_t begin = (list - row * blocks) * size;
    const Span slots{begin, smaller(begin + size, problem.length)};
    const SegmentRange all{0, static_cast<std::int32_t>(problem.segments)};
    const SegmentRange range = phase == 0 ? all : shared.range[phase % 2];
    if (phase < rounds) {
      narrow(problem.cu_seqlens, row_begin + begin, thread, kThreads, range,
             &shared.range[(phase + 1) % 2]);
      return;
    }
    const BlockLists& out = is_row ? kv : q;
    const std::int64_t room = is_row ? problem.kv_blocks() : problem.q_blocks();
    LaneLists lists(out, list, room, thread, kThreads);
    for (std::int64_t i = range.begin;
         i < problem.segments && problem.cu_seqlens[i] < row_begin + slots.end; ++i) {
      const MaskedDocument document = masked_document(problem, row_begin, i);
      if (is_row) {
        add_to_row(problem, document, slots, lists);
        write_bounds(bounds, document, slots, row_begin, thread, kThreads);
      } else {
        add_to_column(problem, document, slots, lists);
      }
    }
    lists.finish(out, list, room);
  }
};

}  // namespace brimful::device
