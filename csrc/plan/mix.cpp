#include "plan/mix.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"

namespace brimful {
namespace {

void check_weights(const std::vector<double>& weights, std::size_t num_sources) {
  if (weights.size() != num_sources) {
    throw PlanError("weights: " + std::to_string(weights.size()) + " given for " +
                    std::to_string(num_sources) + " sources; give one for each source");
  }
  double sum = 0;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    if (!std::isfinite(weights[s]) || weights[s] < 0) {
      throw PlanError("weights: source " + std::to_string(s) + " has weight " +
                      std::to_string(weights[s]) + "; a weight is a finite number, 0 or greater");
    }
    sum += weights[s];
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    throw PlanError("weights: they add up to " + std::to_string(sum) +
                    "; at least one must be greater than 0, and the sum finite");
  }
}

void check_schedule(const std::vector<MixStretch>& schedule, std::size_t num_sources) {
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const std::int64_t from = schedule[i].from;
    if (i == 0 && from != 0) {
      throw PlanError("weights: the schedule begins at token " + std::to_string(from) +
                      "; its first weights hold from 0 on");
    }
    if (i > 0 && from <= schedule[i - 1].from) {
      throw PlanError("weights: position " + std::to_string(from) +
                      " of the schedule comes after " + std::to_string(schedule[i - 1].from) +
                      "; positions rise");
    }
    check_weights(schedule[i].weights, num_sources);
  }
}

void check_max_passes(const std::vector<double>& max_passes, std::size_t num_sources) {
  if (max_passes.size() != num_sources) {
    throw PlanError("max_passes: " + std::to_string(max_passes.size()) + " given for " +
                    std::to_string(num_sources) + " sources; give one for each source");
  }
  for (std::size_t s = 0; s < max_passes.size(); ++s) {
    if (!(max_passes[s] > 0)) {
      throw PlanError("max_passes: source " + std::to_string(s) + " has " +
                      std::to_string(max_passes[s]) +
                      "; passes are greater than 0 (a source that is not wanted has weight 0)");
    }
  }
}

// What an end of each epoch and what goes on over epochs say about the same source contradict.
void check_rule(const Mix& mix) {
  const bool over_epochs = mix.schedule.size() > 1 || !mix.max_passes.empty();
  if (mix.when_dry == WhenDry::kRepeat) return;
  if (over_epochs) {
    throw PlanError(
        "mix: a schedule of weights and max_passes go on over epochs, and when_dry=\"drop\", "
        "\"stop\" and \"error\" speak of each epoch anew. Use when_dry=\"repeat\"; max_passes=1 "
        "takes every document at most once in the run");
  }
  if (mix.epoch_tokens != 0 && mix.when_dry != WhenDry::kError) {
    throw PlanError(
        "mix: epoch_tokens sets the end of an epoch, and so does when_dry=\"drop\" or \"stop\". "
        "Give one of them");
  }
}

}  // namespace

std::optional<WeightUnit> parse_weight_unit(std::string_view name) {
  if (name == "tokens") return WeightUnit::kTokens;
  if (name == "documents") return WeightUnit::kDocuments;
  return std::nullopt;
}

std::optional<WhenDry> parse_when_dry(std::string_view name) {
  if (name == "repeat") return WhenDry::kRepeat;
  if (name == "drop") return WhenDry::kDrop;
  if (name == "stop") return WhenDry::kStop;
  if (name == "error") return WhenDry::kError;
  return std::nullopt;
}

void check(const Mix& mix, std::size_t num_sources) {
  check_schedule(mix.schedule, num_sources);
  if (!mix.max_passes.empty()) check_max_passes(mix.max_passes, num_sources);
  if (mix.epoch_tokens < 0) {
    throw PlanError("epoch_tokens is " + std::to_string(mix.epoch_tokens) +
                    "; an epoch has at least 1 token");
  }
  check_rule(mix);
}

}  // namespace brimful
