#include "plan/step_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace brimful {

std::vector<std::int64_t> even_steps(std::span<const std::int64_t> costs, StepOrder order) {
  using Places = std::vector<std::int64_t>;
  const auto bins = static_cast<std::int64_t>(costs.size());
  Places falling(costs.size());
  std::iota(falling.begin(), falling.end(), std::int64_t{0});
  std::stable_sort(falling.begin(), falling.end(), [&](std::int64_t a, std::int64_t b) {
    return costs[static_cast<std::size_t>(a)] > costs[static_cast<std::size_t>(b)];
  });

  // The steps shared with the windows before and behind take a band about the median, in turn.
  const std::int64_t head = std::min(order.phase, bins);
  const std::int64_t tail = (bins - head) % order.step;
  const std::int64_t whole_steps = (bins - head) / order.step;
  const auto band = falling.begin() + whole_steps / 2 * order.step;
  Places first;
  Places last;
  for (std::int64_t i = 0; i < head + tail; ++i) {
    const bool to_head = (i + 1) * head / (head + tail) > i * head / (head + tail);
    (to_head ? first : last).push_back(band[i]);
  }
  falling.erase(band, band + head + tail);

  struct Step {
    std::int64_t earliest;
    std::int64_t begin;
  };
  std::vector<Step> steps;
  for (std::int64_t begin = 0; begin < whole_steps * order.step; begin += order.step) {
    const auto at = falling.begin() + begin;
    steps.push_back({*std::min_element(at, at + order.step), begin});
  }
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.earliest < b.earliest; });

  Places delivered = std::move(first);
  delivered.reserve(costs.size());
  for (const Step& step : steps) {
    const auto at = falling.begin() + step.begin;
    delivered.insert(delivered.end(), at, at + order.step);
  }
  delivered.insert(delivered.end(), last.begin(), last.end());
  return delivered;
}

std::vector<std::int64_t> deal_in_turn(std::size_t bins, std::int64_t world_size,
                                       std::int64_t phase, std::int64_t block) {
  std::vector<std::int64_t> ranks(bins);
  const std::int64_t turn = world_size * block;
  std::int64_t place = phase == 0 ? 0 : turn - phase;  // in its turn
  for (std::int64_t& dealt : ranks) {
    dealt = place / block;
    if (++place == turn) place = 0;
  }
  return ranks;
}

std::vector<std::int64_t> deal_by_cost(std::span<const std::int64_t> costs, std::int64_t world_size,
                                       std::int64_t phase) {
  std::vector<std::int64_t> ranks(costs.size());
  std::vector<double> loads(static_cast<std::size_t>(world_size));
  std::vector<std::size_t> by_load(loads.size());  // ranks, least load first
  std::iota(by_load.begin(), by_load.end(), std::size_t{0});
  std::vector<std::size_t> turn;  // bins, costliest first
  for (std::size_t begin = 0; begin < costs.size(); begin += turn.size()) {
    const auto most = static_cast<std::size_t>(begin == 0 && phase > 0 ? phase : world_size);
    turn.resize(std::min(most, costs.size() - begin));
    std::iota(turn.begin(), turn.end(), begin);
    std::stable_sort(turn.begin(), turn.end(),
                     [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
    for (std::size_t i = 0; i < turn.size(); ++i) {
      ranks[turn[i]] = static_cast<std::int64_t>(by_load[i]);
      loads[by_load[i]] += static_cast<double>(costs[turn[i]]);
    }
    std::sort(by_load.begin(), by_load.end(), [&](std::size_t a, std::size_t b) {
      return loads[a] != loads[b] ? loads[a] < loads[b] : a < b;
    });
  }
  return ranks;
}

}  // namespace brimful
