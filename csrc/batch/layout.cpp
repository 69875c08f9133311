#include "batch/layout.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace brimful {
namespace {

// A unit that the ranks share out must be a multiple of twice their number.
void check(const Zigzag& zigzag, const LayoutConfig& config) {
  const auto is = [](const char* name, std::int64_t value) {
    return std::string(name) + " is " + std::to_string(value);
  };
  if (zigzag.size < 1 || zigzag.size > (1 << 20) || zigzag.rank < 0 || zigzag.rank >= zigzag.size) {
    throw PlanError(is("cp_rank", zigzag.rank) + " and " + is("cp_size", zigzag.size) +
                    "; cp_size must be 1 to 2^20, and cp_rank at least 0 and less than cp_size");
  }
  const std::int64_t multiple = zigzag.multiple();
  if (config.seq_len % multiple != 0) {
    throw PlanError(is("cp_size", zigzag.size) + " and " + is("seq_len", config.seq_len) +
                    "; seq_len must be a multiple of 2 x cp_size = " + std::to_string(multiple) +
                    ", for every rank holds two chunks of equal length");
  }
  const bool by_sequence = zigzag.unit == ZigzagUnit::kSequence;
  if ((by_sequence && config.keep_tail && !config.trimmed) || config.align % multiple == 0) return;
  throw PlanError(is("cp_size", zigzag.size) + " and " + is("align", config.align) +
                  "; align must be a multiple of 2 x cp_size = " + std::to_string(multiple) +
                  (by_sequence ? ", for rows are as long as the documents in them"
                               : ", for every document is cut into that many chunks") +
                  ": set align=" + std::to_string(multiple));
}

}  // namespace

std::int64_t most_segments(const LayoutConfig& config) {
  const std::int64_t pieces =
      std::min(config.seq_len, config.max_segments.value_or(config.seq_len));
  return config.batch_size * (pieces + (config.keep_tail ? 1 : 0));
}

Layout::Layout(LayoutConfig config) : config_(std::move(config)) {
  if (config_.batch_size < 1 || config_.seq_len < 1 ||
      config_.batch_size > std::numeric_limits<std::int32_t>::max() / config_.seq_len) {
    throw PlanError("a batch of batch_size " + std::to_string(config_.batch_size) + " x seq_len " +
                    std::to_string(config_.seq_len) +
                    " tokens cannot be addressed: both must be at least 1 and their product below "
                    "2^31, the limit of cu_seqlens");
  }
  if (config_.align < 1 || config_.seq_len % config_.align != 0) {
    throw PlanError("align is " + std::to_string(config_.align) + " and seq_len is " +
                    std::to_string(config_.seq_len) + "; align must divide seq_len");
  }
  check(config_.zigzag, config_);
  const std::int64_t share = config_.batch_size * config_.seq_len / config_.zigzag.size;
  constexpr std::size_t kAlignment = 64;
  for (const Column column : config_.fields) {
    offsets_.push_back(slot_bytes_);
    const std::size_t bytes = column_info(column).size * static_cast<std::size_t>(share);
    slot_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

}  // namespace brimful
