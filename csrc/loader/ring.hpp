// The ring: the memory that batches are filled into. It owns slots of equal size and lends them out
// as leases; a slot is free again when the last copy of its lease dies, in whatever thread. The
// slots and their books are shared with the leases, so a lease may outlive the ring.
//
// A slot is free, ahead of the consumer (being filled, or filled and waiting) or with the consumer.
// At most `depth` are ahead; one slot more is made at once, because a loop holds its batch while it
// asks for the next. The ring never waits for its own consumer: where the consumer keeps every
// slot, it grows.
//
// Where memory must be somebody else's, as pinned memory must be torch's, the ring has none of its
// own: it is supplied with blocks, each for one use. A block belongs to the ring from supply()
// until its slot's last lease dies, and then to whoever supplied it.
//
// Threads: everything may be called from any thread. Fork: a lease dropped in a forked child is
// forgotten without a lock, for a thread that is not there may hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "loader/slot_memory.hpp"
#include "loader/telemetry.hpp"

namespace brimful {

// The right to one slot.
using Lease = std::shared_ptr<std::byte>;

class Ring {
 public:
  enum class Memory : std::uint8_t { kOwn, kSupplied };

  struct Counters {
    std::int64_t slots = 0;   // made so far
    std::int64_t grown = 0;   // of these, made because the consumer kept all the others
    std::int64_t in_use = 0;  // lent
  };

  // Slots of `slot_bytes` bytes at 64-byte boundaries, unwritten. Its own come from `source`; null
  // is the ordinary memory of the host.
  Ring(std::size_t slot_bytes, std::int64_t depth, std::optional<std::int64_t> max_slots,
       Memory memory = Memory::kOwn, std::shared_ptr<SlotMemory> source = nullptr);

  // How many blocks should be supplied now: as many as make depth + 1 that are free or ahead. 0 for
  // a ring with memory of its own, and once closed.
  std::int64_t blocks_wanted() const;
  // One block of `slot_bytes` bytes more. Throws Error for a ring with memory of its own.
  void supply(std::byte* block);

  // Whether lease() would not wait, at this moment.
  bool has_room() const;
  // A slot to fill. Waits until one is free and fewer than `depth` are ahead, and adds the wait to
  // `waited`; null once closed.
  Lease lease(TimeSum& waited);
  // The same where lease() would not wait, else null.
  Lease lease_at_once();
  // The consumer takes this slot over: it is no longer ahead.
  void hand_over(const Lease& slot);
  // Adds a slot if the consumer holds every one, for then lease() would wait for the consumer.
  // Throws RingExhausted at `max_slots`, and Error where a block should have been supplied.
  void grow_if_all_held();

  // Lends no more, and wakes who waits. Free slots are released now, lent ones with their leases.
  void close();
  bool closed() const;

  Counters counters() const;

 private:
  struct State;
  struct Return;
  Lease lend(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<State> state_;
};

}  // namespace brimful
