// Finds the segment that holds a slot. cu_seqlens [segments + 1] rise from 0 to total, and the
// segment of a slot is the last that begins at or before it, which is never an empty one.
#pragma once

#include <cstdint>

#include "device/host_device.hpp"

namespace brimful::device {

// Segments begin .. end - 1; the one looked for is among them.
struct SegmentRange {
  std::int32_t begin;
  std::int32_t end;
};

// The threads of a block look together: each round divides the range among them, and the one whose
// part holds the slot writes it down. Many threads find in one or two loads what one finds in ten.
// The range's ends are taken to be right: then some thread finds a part in any cu_seqlens, and
// where they fall and several do, what is read next is still a range among the segments.
BRIMFUL_HD inline void narrow(const std::int32_t* cu_seqlens, std::int64_t slot, int thread,
                              int threads, SegmentRange range, SegmentRange* found) {
  range.end = larger(range.end, range.begin + 1);
  const std::int32_t part = divide_up(range.end - range.begin, static_cast<std::int32_t>(threads));
  const std::int64_t begin = range.begin + static_cast<std::int64_t>(thread) * part;
  if (begin >= range.end) return;
  const std::int64_t end = smaller<std::int64_t>(begin + part, range.end);
  if ((begin == range.begin || cu_seqlens[begin] <= slot) &&
      (end == range.end || slot < cu_seqlens[end])) {
    *found = {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)};
  }
}

// Rounds of `narrow` after which a range of `segments` is down to one.
constexpr int rounds_to_find(std::int64_t segments, int threads) {
  int rounds = 0;
  for (; segments > 1; segments = divide_up<std::int64_t>(segments, threads)) ++rounds;
  return rounds;
}

// One thread by itself.
BRIMFUL_HD inline std::int32_t find_segment(const std::int32_t* cu_seqlens, std::int64_t slot,
                                            SegmentRange range) {
  while (range.end - range.begin > 1) {
    const std::int32_t middle = range.begin + (range.end - range.begin) / 2;
    if (cu_seqlens[middle] <= slot) {
      range.begin = middle;
    } else {
      range.end = middle;
    }
  }
  return range.begin;
}

}  // namespace brimful::device
