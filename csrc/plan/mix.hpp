// How the sources of a corpus are mixed: their weights over the run, what happens when one runs
// dry, how often each may be repeated, and how long an epoch is. Positions and lengths count tokens
// that the packing can deliver, of all sources together; weights are relative to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace brimful {

enum class WeightUnit : std::uint8_t { kTokens, kDocuments };
enum class WhenDry : std::uint8_t { kRepeat, kDrop, kStop, kError };

std::optional<WeightUnit> parse_weight_unit(std::string_view name);
std::optional<WhenDry> parse_when_dry(std::string_view name);

// Weights that hold from a position of the run on, until the next stretch begins.
struct MixStretch {
  std::int64_t from;            // tokens of the run
  std::vector<double> weights;  // one a source
};

struct Mix {
  std::vector<MixStretch> schedule;  // empty: by document count, every document once an epoch
  WeightUnit unit = WeightUnit::kTokens;
  WhenDry when_dry = WhenDry::kRepeat;
  std::vector<double> max_passes;  // one a source, of the whole run; infinite: no cap; or empty
  std::int64_t epoch_tokens = 0;   // 0: as many draws as there are documents
};

// Throws PlanError for a mix that cannot be, or not with that many sources.
void check(const Mix& mix, std::size_t num_sources);

}  // namespace brimful
