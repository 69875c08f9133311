#include "batch/cu_seqlens.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/round_up.hpp"

namespace brimful {
namespace {

void check_options(const CuSeqlensOptions& options) {
  if (options.align < 1 || options.align > kMostSlots) {
    throw PlanError("align is " + std::to_string(options.align) + "; it must be from 1 to " +
                    std::to_string(kMostSlots));
  }
  if (options.total && *options.total < 0) {
    throw PlanError("total is " + std::to_string(*options.total) + "; it counts slots");
  }
  if (options.max_segments && (*options.max_segments < 0 || *options.max_segments > kMostSlots)) {
    throw PlanError("max_segments is " + std::to_string(*options.max_segments) +
                    "; it counts segments: from 0 to " + std::to_string(kMostSlots));
  }
}

[[noreturn]] void too_many_slots(std::int64_t slots) {
  throw PlanError("the documents take " + std::to_string(slots) + " slots or more; cu_seqlens " +
                  "counts to " + std::to_string(kMostSlots) + ": give fewer documents");
}

}  // namespace

std::vector<std::int32_t> make_cu_seqlens(std::span<const std::int64_t> lengths,
                                          std::span<const std::int64_t> row_sizes,
                                          const CuSeqlensOptions& options) {
  check_options(options);
  std::vector<std::int32_t> cu_seqlens{0};
  cu_seqlens.reserve(lengths.size() + row_sizes.size() + 1);
  std::int64_t at = 0;
  std::size_t document = 0;
  for (std::size_t row = 0; row < row_sizes.size(); ++row) {
    const std::int64_t begin = at;
    const std::size_t end = document + static_cast<std::size_t>(row_sizes[row]);
    for (; document < end; ++document) {
      const std::int64_t length = lengths[document];
      if (length < 0) {
        throw PlanError("document " + std::to_string(document) + " has the length " +
                        std::to_string(length) + "; lengths count tokens");
      }
      if (length == 0 && !options.keep_empty) continue;
      if (length > kMostSlots) too_many_slots(length);
      at += round_up(length, options.align);
      if (at > kMostSlots) too_many_slots(at);
      cu_seqlens.push_back(static_cast<std::int32_t>(at));
    }
    if (!options.total) continue;
    const std::int64_t used = at - begin;
    if (used > *options.total) {
      throw PlanError("the documents of row " + std::to_string(row) + " take " +
                      std::to_string(used) + " slots, and total is " +
                      std::to_string(*options.total) + ": give a larger total, or fewer documents");
    }
    at = begin + *options.total;
    if (at > kMostSlots) too_many_slots(at);
    if (used < *options.total) cu_seqlens.push_back(static_cast<std::int32_t>(at));
  }
  if (options.max_segments) {
    const auto segments = static_cast<std::int64_t>(cu_seqlens.size()) - 1;
    if (segments > *options.max_segments) {
      throw PlanError("there are " + std::to_string(segments) + " segments, tails included, and " +
                      "room for " + std::to_string(*options.max_segments) +
                      ": give a larger max_segments, or fewer documents");
    }
    cu_seqlens.resize(static_cast<std::size_t>(*options.max_segments) + 1, cu_seqlens.back());
  }
  return cu_seqlens;
}

void check_cu_seqlens(std::span<const std::int32_t> cu_seqlens) {
  if (cu_seqlens.empty() || cu_seqlens.front() != 0) {
    throw PlanError("cu_seqlens must begin with 0" +
                    (cu_seqlens.empty() ? std::string(", and is empty")
                                        : ", found " + std::to_string(cu_seqlens.front())));
  }
  const auto fall = std::adjacent_find(cu_seqlens.begin(), cu_seqlens.end(), std::greater<>());
  if (fall == cu_seqlens.end()) return;
  throw PlanError("cu_seqlens falls from " + std::to_string(fall[0]) + " to " +
                  std::to_string(fall[1]) + " at " + std::to_string(fall - cu_seqlens.begin() + 1) +
                  "; it holds where each segment begins, in order");
}

std::int64_t check_rows(std::span<const std::int32_t> cu_seqlens, std::int64_t rows) {
  check_cu_seqlens(cu_seqlens);
  const std::int64_t total = cu_seqlens.back();
  if (rows < 1 || total % rows != 0) {
    throw PlanError("cu_seqlens ends at " + std::to_string(total) + ", which is not " +
                    std::to_string(rows) + " rows of equal size");
  }
  const std::int64_t width = total / rows;
  for (std::int64_t row = 1; row < rows; ++row) {
    const auto start = static_cast<std::int32_t>(row * width);
    if (std::binary_search(cu_seqlens.begin(), cu_seqlens.end(), start)) continue;
    throw PlanError("row " + std::to_string(row) + " begins at " + std::to_string(start) +
                    ", inside a segment; each row of " + std::to_string(width) +
                    " slots must begin with a segment of its own");
  }
  return width;
}

}  // namespace brimful
