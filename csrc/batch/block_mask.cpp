#include "batch/block_mask.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "batch/cu_seqlens.hpp"
#include "core/cpu.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

// Division of slots by a block size. Block sizes are powers of two but for curious cases.
class ByShift {
 public:
  explicit ByShift(std::int64_t size)
      : size_(size), shift_(std::countr_zero(static_cast<std::uint64_t>(size))) {}
  std::int64_t size() const { return size_; }
  std::int64_t down(std::int64_t slot) const { return slot >> shift_; }
  std::int64_t up(std::int64_t slot) const { return (slot + size_ - 1) >> shift_; }

 private:
  std::int64_t size_;
  int shift_;
};

class ByDivision {
 public:
  explicit ByDivision(std::int64_t size) : size_(size) {}
  std::int64_t size() const { return size_; }
  std::int64_t down(std::int64_t slot) const { return slot / size_; }
  std::int64_t up(std::int64_t slot) const { return (slot + size_ - 1) / size_; }

 private:
  std::int64_t size_;
};

// Blocks, or slots, from `begin` up to `end`; empty where that is not above.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// A document's place in its row: its slots, and where its prefix ends.
struct Document {
  std::int64_t begin;
  std::int64_t prefix_end;
  std::int64_t end;
};

// The documents of one row, asked for from left to right.
class Documents {
 public:
  Documents(std::span<const std::int32_t> cu_seqlens, std::size_t first, std::int64_t row_begin,
            const AttentionRule& rule)
      : cu_seqlens_(cu_seqlens), rule_(rule), row_begin_(row_begin), at_(first) {}

  // The one that covers `slot`, which never falls from call to call.
  Document covering(std::int64_t slot) {
    while (cu_seqlens_[at_ + 1] - row_begin_ <= slot) ++at_;
    const std::int64_t begin = cu_seqlens_[at_] - row_begin_;
    const std::int64_t end = cu_seqlens_[at_ + 1] - row_begin_;
    return {begin, rule_.prefix_end(at_, begin, end), end};
  }

 private:
  std::span<const std::int32_t> cu_seqlens_;
  const AttentionRule& rule_;
  std::int64_t row_begin_;
  std::size_t at_;
};

// Two ranges, the first before the second and not touching it.
struct RangePair {
  Range first;
  Range second;
};

// What is in either; a.begin <= b.begin unless one of them is empty.
RangePair join(Range a, Range b) {
  if (b.begin >= b.end) b = {a.end, a.end};
  if (a.begin >= a.end) a = {b.begin, b.begin};
  if (a.end < b.begin) return {a, b};
  return {{a.begin, a.begin}, {a.begin, std::max(a.end, b.end)}};
}

// A list of blocks that is being written.
class List {
 public:
  explicit List(std::int32_t* out) : out_(out) {}
  void add(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    std::int32_t* out = out_ + count_;
    const std::int64_t blocks = end - begin;
    for (std::int64_t i = 0; i < blocks; ++i) out[i] = static_cast<std::int32_t>(begin + i);
    count_ += blocks;
  }
  void add_without(Range range, const RangePair& left_out) {
    add(range.begin, std::min(range.end, left_out.first.begin));
    add(std::max(range.begin, left_out.first.end), std::min(range.end, left_out.second.begin));
    add(std::max(range.begin, left_out.second.end), range.end);
  }
  std::int32_t count() const { return static_cast<std::int32_t>(count_); }

 private:
  std::int32_t* out_;
  std::int64_t count_ = 0;
};

// Lists number `at` of both: blocks that are met, full ones apart.
void write_lists(const RangePair& met, const RangePair& full, std::int64_t at, std::int64_t room,
                 const BlockLists& partial_out, const BlockLists& full_out) {
  List partial_list(partial_out.indices + at * room);
  partial_list.add_without(met.first, full);
  partial_list.add_without(met.second, full);
  partial_out.counts[at] = partial_list.count();
  List full_list(full_out.indices + at * room);
  full_list.add(full.first.begin, full.first.end);
  full_list.add(full.second.begin, full.second.end);
  full_out.counts[at] = full_list.count();
}

// The key blocks of queries r0 .. r1 - 1. `window` <= L.
template <class Blocks>
BRIMFUL_HOT void write_kv_lists(Documents documents, std::int64_t slots, std::int64_t window,
                                const Blocks& q, const Blocks& kv, std::int64_t at,
                                const BlockMask& out) {
  const std::int64_t room = kv.up(slots);
  for (std::int64_t r0 = 0; r0 < slots; r0 += q.size(), ++at) {
    const std::int64_t r1 = std::min(r0 + q.size(), slots);
    const Document first = documents.covering(r0);
    const Document last = documents.covering(r1 - 1);
    const bool alone = first.begin == last.begin;
    // Queries of later documents see keys from their document's begin on: with those that the first
    // document's queries see near them, one range.
    const Range prefix{kv.down(first.begin), kv.up(first.prefix_end)};
    const Range near{kv.down(std::max(first.begin, r0 - window + 1)),
                     kv.up(alone ? r1 : std::max(r1, last.prefix_end))};
    const RangePair met =
        join(first.prefix_end == first.begin ? Range{near.begin, near.begin} : prefix, near);
    RangePair full{{met.second.end, met.second.end}, {met.second.end, met.second.end}};
    if (alone && r1 - r0 == q.size()) {
      // Every query sees a key that none is before and none is too far from.
      const std::int64_t oldest =
          first.prefix_end > r1 - 1 - window ? first.begin : std::max(first.begin, r1 - window);
      full =
          join({kv.up(first.begin), kv.down(first.prefix_end)}, {kv.up(oldest), kv.down(r0 + 1)});
    }
    write_lists(met, full, at, room, out.kv, out.full_kv);
  }
}

// The query blocks of keys c0 .. c1 - 1. `window` <= L.
template <class Blocks>
BRIMFUL_HOT void write_q_lists(Documents documents, std::int64_t slots, std::int64_t window,
                               const Blocks& q, const Blocks& kv, std::int64_t at,
                               const BlockMask& out) {
  const std::int64_t room = q.up(slots);
  for (std::int64_t c0 = 0; c0 < slots; c0 += kv.size(), ++at) {
    const std::int64_t c1 = std::min(c0 + kv.size(), slots);
    const Document first = documents.covering(c0);
    const Document last = documents.covering(c1 - 1);
    // A key of a prefix is seen from everywhere in its document. Documents that end in the block
    // are seen up to their end, so all is one range.
    const bool ends_in_prefix = std::max(c0, last.begin) < last.prefix_end;
    const Range met{q.down(c0 < first.prefix_end ? first.begin : c0),
                    q.up(ends_in_prefix ? last.end : std::min(last.end, c1 - 1 + window))};
    Range full{met.end, met.end};
    if (first.begin == last.begin && c1 - c0 == kv.size()) {
      const std::int64_t oldest = std::max(c0, first.prefix_end);
      full = c1 <= first.prefix_end
                 ? Range{q.up(first.begin), q.down(first.end)}
                 : Range{q.up(c1 - 1), q.down(std::min(first.end, oldest + window))};
    }
    write_lists({{met.begin, met.begin}, met}, join({full.begin, full.begin}, full), at, room,
                out.q, out.full_q);
  }
}

template <class Blocks>
void write_row(const Documents& documents, std::int64_t slots, std::int64_t window,
               const BlockShape& shape, std::int64_t row, const BlockMask& out) {
  const Blocks q(shape.q);
  const Blocks kv(shape.kv);
  write_kv_lists(documents, slots, window, q, kv, row * q.up(slots), out);
  write_q_lists(documents, slots, window, q, kv, row * kv.up(slots), out);
}

}  // namespace

std::int64_t count_blocks(std::int64_t slots, std::int64_t size) {
  if (size < 1 || size > kMostSlots) {
    throw PlanError("block_size is " + std::to_string(size) + "; it must be from 1 to " +
                    std::to_string(kMostSlots));
  }
  return (slots + size - 1) / size;
}

void write_block_mask(std::span<const std::int32_t> cu_seqlens, std::int64_t rows,
                      const AttentionRule& rule, const BlockShape& shape, const BlockMask& out) {
  const std::int64_t slots = check_rows(cu_seqlens, rows);
  check_rule(rule, cu_seqlens.size() - 1);
  count_blocks(slots, shape.q);
  count_blocks(slots, shape.kv);
  const std::int64_t window = std::min(rule.window, slots);
  const bool shifts = std::has_single_bit(static_cast<std::uint64_t>(shape.q)) &&
                      std::has_single_bit(static_cast<std::uint64_t>(shape.kv));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = std::upper_bound(cu_seqlens.begin(), cu_seqlens.end(), row * slots);
    const Documents documents(cu_seqlens, static_cast<std::size_t>(first - cu_seqlens.begin()) - 1,
                              row * slots, rule);
    if (shifts) {
      write_row<ByShift>(documents, slots, window, shape, row, out);
    } else {
      write_row<ByDivision>(documents, slots, window, shape, row, out);
    }
  }
}

}  // namespace brimful
