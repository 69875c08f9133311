#include "batch/attention_rule.hpp"

#include <string>

#include "core/error.hpp"

namespace brimful {

void check_rule(const AttentionRule& rule, std::size_t segments) {
  if (rule.window < 1) {
    throw PlanError("window is " + std::to_string(rule.window) +
                    "; it counts the keys that a query sees, itself included: at least 1");
  }
  if (rule.prefix_lengths.empty()) return;
  if (rule.prefix_lengths.size() != segments) {
    throw PlanError("prefix_lengths has " + std::to_string(rule.prefix_lengths.size()) +
                    " values, and cu_seqlens " + std::to_string(segments) +
                    " segments: give one a segment");
  }
  for (std::size_t i = 0; i < segments; ++i) {
    if (rule.prefix_lengths[i] >= 0) continue;
    throw PlanError("the prefix of segment " + std::to_string(i) + " has the length " +
                    std::to_string(rule.prefix_lengths[i]) + "; it counts tokens");
  }
}

}  // namespace brimful
