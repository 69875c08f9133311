#include "batch/layout.hpp"

#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace brimful {

Layout::Layout(LayoutConfig config) : config_(std::move(config)) {
  if (config_.batch_size < 1 || config_.seq_len < 1 ||
      config_.batch_size > std::numeric_limits<std::int32_t>::max() / config_.seq_len) {
    throw PlanError("a batch of batch_size " + std::to_string(config_.batch_size) + " x seq_len " +
                    std::to_string(config_.seq_len) +
                    " tokens cannot be addressed: both must be at least 1 and their product below "
                    "2^31, the limit of cu_seqlens");
  }
  constexpr std::size_t kAlignment = 64;
  for (const Column column : config_.fields) {
    offsets_.push_back(slot_bytes_);
    const std::size_t bytes =
        column_info(column).size * static_cast<std::size_t>(config_.batch_size * config_.seq_len);
    slot_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

}  // namespace brimful
