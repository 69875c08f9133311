#include "batch/unpad.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/round_up.hpp"

namespace brimful {
namespace {

constexpr std::size_t kCopyBytes = 1 << 14;  // copies from the cache, not from what was filled
constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void too_many(std::int64_t tokens) {
  throw PlanError("the rows hold " + std::to_string(tokens) + " tokens with their tail; " +
                  "cu_seqlens counts to " + std::to_string(kMostTokens) + ": give fewer rows");
}

// The first byte from `begin` on that is `value`, or `end`.
std::int64_t find_byte(std::span<const std::uint8_t> bytes, std::int64_t begin, std::int64_t end,
                       std::uint8_t value) {
  if (begin == end) return end;  // of an empty mask there may be no address
  const std::uint8_t* from = bytes.data() + begin;
  const void* found = std::memchr(from, value, static_cast<std::size_t>(end - begin));
  return found == nullptr ? end : begin + (static_cast<const std::uint8_t*>(found) - from);
}

// Writes `pattern` over and over into out [bytes], twice as much each time.
void repeat(std::span<const std::byte> pattern, std::byte* out, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t most = std::max(kCopyBytes / pattern.size(), std::size_t{1}) * pattern.size();
  std::memcpy(out, pattern.data(), pattern.size());
  for (std::size_t done = pattern.size(); done < bytes;) {
    const std::size_t more = std::min({done, bytes - done, most});
    std::memcpy(out + done, out, more);
    done += more;
  }
}

void check_offsets(std::span<const std::int64_t> cu_seqlens, std::int64_t rows) {
  if (cu_seqlens.empty() || cu_seqlens.front() != 0) {
    throw PlanError("cu_seqlens must begin with 0" +
                    (cu_seqlens.empty() ? std::string(", and is empty")
                                        : ", found " + std::to_string(cu_seqlens.front())));
  }
  for (std::size_t i = 1; i < cu_seqlens.size(); ++i) {
    if (cu_seqlens[i] >= cu_seqlens[i - 1]) continue;
    throw PlanError("cu_seqlens falls from " + std::to_string(cu_seqlens[i - 1]) + " to " +
                    std::to_string(cu_seqlens[i]) + " at " + std::to_string(i) +
                    "; it holds where each segment begins, in order");
  }
  const auto segments = static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  if (rows < 0 || rows > segments) {
    throw PlanError("cu_seqlens has " + std::to_string(segments) + " segments; " +
                    std::to_string(rows) + " rows are asked for");
  }
  if (cu_seqlens.back() > kMostTokens) too_many(cu_seqlens.back());
}

}  // namespace

TokenRuns find_tokens(std::span<const std::uint8_t> mask, std::int64_t rows, std::int64_t width,
                      std::int64_t multiple) {
  std::vector<TokenRun> runs;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t end = (row + 1) * width;
    for (std::int64_t slot = find_byte(mask, row * width, end, 1); slot < end;) {
      const std::int64_t run_end = find_byte(mask, slot, end, 0);
      runs.push_back({slot, run_end - slot});
      lengths[static_cast<std::size_t>(row)] += run_end - slot;
      slot = find_byte(mask, run_end, end, 1);
    }
  }
  TokenRuns where = count_tokens(lengths, width, multiple);
  where.runs = std::move(runs);
  return where;
}

TokenRuns count_tokens(std::span<const std::int64_t> lengths, std::int64_t width,
                       std::int64_t multiple) {
  if (multiple < 1 || multiple > kMostTokens) {
    throw PlanError("multiple is " + std::to_string(multiple) + "; it must be from 1 to " +
                    std::to_string(kMostTokens));
  }
  TokenRuns where{.rows = static_cast<std::int64_t>(lengths.size()),
                  .width = width,
                  .runs = {},
                  .cu_seqlens = {0}};
  where.cu_seqlens.reserve(lengths.size() + 2);
  for (const std::int64_t tokens : lengths) {
    where.num_tokens += tokens;
    if (where.num_tokens > kMostTokens) too_many(where.num_tokens);
    where.max_seqlen = std::max(where.max_seqlen, tokens);
    where.cu_seqlens.push_back(static_cast<std::int32_t>(where.num_tokens));
  }
  where.total = round_up(where.num_tokens, multiple);
  if (where.total > kMostTokens) too_many(where.total);
  if (where.total > where.num_tokens) {
    where.max_seqlen = std::max(where.max_seqlen, where.total - where.num_tokens);
    where.cu_seqlens.push_back(static_cast<std::int32_t>(where.total));
  }
  return where;
}

TokenRuns lay_segments(std::span<const std::int64_t> cu_seqlens, std::int64_t rows,
                       std::int64_t width, Side padding) {
  check_offsets(cu_seqlens, rows);
  if (width < 0 || width > kMostTokens) {
    throw PlanError("width is " + std::to_string(width) + "; it must be from 0 to " +
                    std::to_string(kMostTokens));
  }
  TokenRuns where{.rows = rows, .width = width, .runs = {}, .cu_seqlens = {0}};
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t tokens = cu_seqlens[at + 1] - cu_seqlens[at];
    if (tokens > width) {
      throw PlanError("segment " + std::to_string(row) + " has " + std::to_string(tokens) +
                      " tokens, more than the width of " + std::to_string(width) +
                      ": give a larger width, or none to take the longest segment's");
    }
    const std::int64_t gap = padding == Side::kLeft ? width - tokens : 0;
    if (tokens > 0) where.runs.push_back({row * width + gap, tokens});
    where.max_seqlen = std::max(where.max_seqlen, tokens);
    where.cu_seqlens.push_back(static_cast<std::int32_t>(cu_seqlens[at + 1]));
  }
  where.num_tokens = where.cu_seqlens.back();
  where.total = cu_seqlens.back();
  return where;
}

void check_segments(const TokenRuns& where, std::span<const std::int64_t> cu_seqlens) {
  check_offsets(cu_seqlens, where.rows);
  for (std::int64_t row = 0; row < where.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t found = cu_seqlens[at + 1] - cu_seqlens[at];
    const std::int64_t expected = where.cu_seqlens[at + 1] - where.cu_seqlens[at];
    if (found == expected) continue;
    throw PlanError("row " + std::to_string(row) + " of attention_mask has " +
                    std::to_string(expected) + " tokens, segment " + std::to_string(row) +
                    " of cu_seqlens has " + std::to_string(found) +
                    ": give the mask that the values were unpadded with");
  }
}

void gather_tokens(const TokenRuns& where, const std::byte* padded, std::size_t item_size,
                   std::byte* values) {
  if (item_size == 0) return;
  for (const auto& run : where.runs) {
    const std::size_t bytes = static_cast<std::size_t>(run.tokens) * item_size;
    std::memcpy(values, padded + static_cast<std::size_t>(run.slot) * item_size, bytes);
    values += bytes;
  }
}

void scatter_tokens(const TokenRuns& where, const std::byte* values, std::size_t item_size,
                    std::span<const std::byte> fill, std::byte* padded) {
  if (item_size == 0) return;
  std::byte* at = padded;
  for (const auto& run : where.runs) {
    std::byte* to = padded + static_cast<std::size_t>(run.slot) * item_size;
    repeat(fill, at, static_cast<std::size_t>(to - at));
    const std::size_t bytes = static_cast<std::size_t>(run.tokens) * item_size;
    std::memcpy(to, values, bytes);
    values += bytes;
    at = to + bytes;
  }
  const std::byte* end = padded + static_cast<std::size_t>(where.rows * where.width) * item_size;
  repeat(fill, at, static_cast<std::size_t>(end - at));
}

}  // namespace brimful
