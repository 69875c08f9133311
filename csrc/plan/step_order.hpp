// Even work for all ranks in every optimizer step: an order of a window's bins in which bins of
// like cost share a step, and the dealing of a step to ranks. The order depends on the costs, on
// the bins of a step and on where in a step the window begins, and so not on how a step is dealt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace brimful {

struct StepOrder {
  std::int64_t step = 0;   // bins of a step, over all ranks and micro-batches; 0: not in steps
  std::int64_t phase = 0;  // bins of the window that complete a step begun before it, 0 .. step - 1
  bool operator==(const StepOrder&) const = default;
};

// Places in the given order [bins], as they are to be delivered; costs[i] is that of the bin at
// place i, order.step at least 1. Behind the first `phase` bins each `step` consecutive ones have
// consecutive costs, and these steps come in the order of their earliest bin. What shares a step
// with another window, at both ends, has costs about the median, in every window: so that step is
// even too. Bins of a step stand in falling order of cost.
std::vector<std::int64_t> even_steps(std::span<const std::int64_t> costs, StepOrder order);

// The rank of each of `bins` bins: 0, 1, .. in turn, each for `block` bins, where bin `phase`
// (below world_size * block) is the first of rank 0.
std::vector<std::int64_t> deal_in_turn(std::size_t bins, std::int64_t world_size,
                                       std::int64_t phase, std::int64_t block = 1);

// The same turns of `world_size` bins; in each of them the costliest bin goes to the rank that got
// the least cost in those before, the next one to the rank with the next least, and so on.
std::vector<std::int64_t> deal_by_cost(std::span<const std::int64_t> costs, std::int64_t world_size,
                                       std::int64_t phase);

}  // namespace brimful
