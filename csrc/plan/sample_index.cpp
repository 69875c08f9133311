#include "plan/sample_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace brimful {
namespace {

constexpr std::size_t kAhead = 24;  // reads of lengths under way

[[noreturn]] void refuse(std::int64_t document, std::int64_t documents, std::int64_t length) {
  if (document < 0 || document >= documents) {
    throw PlanError("the order has document " + std::to_string(document) + " of " +
                    std::to_string(documents) + "; they are numbered from 0");
  }
  throw PlanError("document " + std::to_string(document) + " has a length of " +
                  std::to_string(length) + " tokens; a length cannot be negative");
}

}  // namespace

std::int64_t count_samples(std::int64_t tokens, const SampleRule& rule) {
  if (rule.seq_len < 1) {
    throw PlanError("seq_len is " + std::to_string(rule.seq_len) +
                    "; a sample has at least 1 token");
  }
  const std::int64_t usable = tokens - (rule.extra_token ? 1 : 0);
  if (rule.drop_partial) return std::max<std::int64_t>(0, usable) / rule.seq_len;
  // Megatron rounds to 32 bits here, so that more than 2^24 tokens may be a sample more or less.
  const float samples = static_cast<float>(usable) / static_cast<float>(rule.seq_len);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(samples)));
}

template <class Index, class Length>
UnsetVector<Index> index_samples(std::span<const Length> lengths,
                                 std::span<const std::int32_t> order, std::int64_t count,
                                 const SampleRule& rule) {
  UnsetVector<Index> index;
  reserve_large(index, static_cast<std::size_t>(2 * (count + 1)));
  index.resize(static_cast<std::size_t>(2 * (count + 1)));
  Index* out = index.data();
  Index* const end = out + index.size();
  *out++ = 0;
  *out++ = 0;
  // Sample k begins at token k * seq_len of all. Its document is that of this token, or, where
  // samples have no extra token, that of the one before.
  const std::int64_t before = rule.extra_token ? 0 : 1;
  std::int64_t next = rule.seq_len;  // where the next sample begins, counted from this document
  std::size_t i = 0;
  for (; out != end && i < order.size(); ++i) {
    if (i + kAhead < order.size()) {
      __builtin_prefetch(lengths.data() + static_cast<std::uint32_t>(order[i + kAhead]));
    }
    const auto document = static_cast<std::uint32_t>(order[i]);
    const std::int64_t length = document < lengths.size() ? std::int64_t{lengths[document]} : -1;
    if (length < 0) [[unlikely]] {
      refuse(order[i], static_cast<std::int64_t>(lengths.size()),
             document < lengths.size() ? length : 0);
    }
    // Written whether a sample begins here or not, which no branch predictor could tell.
    out[0] = static_cast<Index>(i);
    out[1] = static_cast<Index>(next);
    const bool begins = next - before < length;
    out += begins ? 2 : 0;
    next += begins ? rule.seq_len : 0;
    for (; next - before < length && out != end; next += rule.seq_len) {
      *out++ = static_cast<Index>(i);
      *out++ = static_cast<Index>(next);
    }
    next -= length;
  }
  if (out == end) return index;
  if (order.empty()) throw PlanError("samples of no documents cannot be indexed");
  const std::int64_t last =
      static_cast<std::int64_t>(lengths[static_cast<std::size_t>(order.back())]) -
      (rule.extra_token ? 1 : 0);
  if (last < 0) {
    throw PlanError(
        "the last sample is partial and the order ends with an empty document, which Megatron "
        "does not index either: leave partial samples out, or empty documents");
  }
  while (out != end) {
    *out++ = static_cast<Index>(order.size() - 1);
    *out++ = static_cast<Index>(last);
  }
  return index;
}

template UnsetVector<std::int32_t> index_samples(std::span<const std::int32_t>,
                                                 std::span<const std::int32_t>, std::int64_t,
                                                 const SampleRule&);
template UnsetVector<std::int32_t> index_samples(std::span<const std::int64_t>,
                                                 std::span<const std::int32_t>, std::int64_t,
                                                 const SampleRule&);
template UnsetVector<std::int64_t> index_samples(std::span<const std::int32_t>,
                                                 std::span<const std::int32_t>, std::int64_t,
                                                 const SampleRule&);
template UnsetVector<std::int64_t> index_samples(std::span<const std::int64_t>,
                                                 std::span<const std::int32_t>, std::int64_t,
                                                 const SampleRule&);

}  // namespace brimful
