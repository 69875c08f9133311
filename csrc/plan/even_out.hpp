// Evening out: the costliest bin and another one divide their units anew, as long as both come out
// cheaper than the costliest was.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/open_bins.hpp"

namespace brimful {

struct WorkUnit {
  std::int64_t arrival;  // its number in the order given
  std::int64_t cost;
  Room room;  // that it takes
};

struct WorkBin {
  std::int64_t cost = 0;
  Room left;
  std::vector<std::int64_t> units = {};  // numbers, rising
};

// `units` are in falling order of cost, and a bin has room for `whole`. The costliest bin is helped
// first; where none of some others helps, it stays as it is, and the next one is helped. Ends when
// the bins left are even to a thousandth, or after as many steps as take some tenths of a second.
void even_out(std::span<const WorkUnit> units, const Room& whole, std::vector<WorkBin>& bins);

}  // namespace brimful
