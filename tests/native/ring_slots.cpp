// Which slot of a ring a thread is lent: of the free ones the last that it has filled itself, or
// else the last returned; and a thread that waits gets one as soon as a quarter of the ring is
// free.
#include <algorithm>
#include <thread>
#include <vector>

#include "loader/ring.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

constexpr std::size_t kBytes = 64;

Lease lease(Ring& ring) {
  TimeSum waited;
  return ring.lease(waited);
}

// Another thread's.
Lease lease_elsewhere(Ring& ring) {
  Lease slot;
  std::jthread([&] { slot = lease(ring); }).join();
  return slot;
}

void prefer_own_slots() {
  Ring ring(kBytes, /*depth=*/4, std::nullopt);
  Lease mine = lease(ring);
  Lease theirs = lease_elsewhere(ring);
  const std::byte* my_memory = mine.get();
  const std::byte* their_memory = theirs.get();
  mine.reset();
  theirs.reset();
  Lease again = lease(ring);
  check(again.get() == my_memory, "a thread is not lent the slot that it has filled");
  check(lease(ring).get() == their_memory, "the slot returned last is not lent");
  again.reset();
  check(lease_elsewhere(ring).get() == my_memory, "the slot returned last is not lent");
}

void wake_for_a_quarter(std::int64_t depth) {
  Ring ring(kBytes, depth, std::nullopt);
  std::vector<Lease> ahead;
  while (ring.has_room()) ahead.push_back(lease(ring));
  check(static_cast<std::int64_t>(ahead.size()) == depth, "more or less than depth are ahead");
  Lease slot;
  std::jthread waiting([&] { slot = lease(ring); });
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, depth / 4); ++i) {
    ring.hand_over(ahead.back());
    ahead.pop_back();
  }
  waiting.join();  // ends, or the alarm rings
  check(slot != nullptr, "a ring that is not closed lends nothing");
}

}  // namespace

int main() {
  end_if_hung();
  prefer_own_slots();
  for (int round = 0; round < 50; ++round) {
    for (const std::int64_t depth : {1, 2, 3, 4, 5, 7, 8, 16, 31}) wake_for_a_quarter(depth);
  }
}
