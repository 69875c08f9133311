#include "loader/ring.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/home.hpp"

namespace brimful {

namespace {

constexpr std::size_t kAlignment = 64;
// From the size of a huge page on, a slot is mapped for itself and huge pages are asked for: the
// first write to fresh memory then costs a fraction, and later ones miss the TLB less.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct FreeMemory {
  std::size_t bytes = 0;
  std::shared_ptr<SlotMemory> source = nullptr;
  void operator()(std::byte* memory) const {
    if (source != nullptr) {
      source->release(memory, bytes);
    } else if (bytes >= kHugePage) {
      munmap(memory, bytes);
    } else {
      ::operator delete(memory, std::align_val_t{kAlignment});
    }
  }
};

using OwnMemory = std::unique_ptr<std::byte, FreeMemory>;

[[noreturn]] void throw_too_large(std::size_t bytes) {
  throw Error("a batch of " + std::to_string(bytes) +
              " bytes cannot be allocated; lower batch_size or seq_len, or ask for fewer fields");
}

OwnMemory allocate(std::size_t bytes, const std::shared_ptr<SlotMemory>& source) {
  if (source != nullptr) return OwnMemory(source->allocate(bytes), FreeMemory{bytes, source});
  if (bytes < kHugePage) {
    void* memory =
        ::operator new(std::max(bytes, kAlignment), std::align_val_t{kAlignment}, std::nothrow);
    if (memory == nullptr) throw_too_large(bytes);
    return OwnMemory(static_cast<std::byte*>(memory), FreeMemory{bytes});
  }
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (memory == MAP_FAILED) throw_too_large(bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: kernels without huge pages refuse, harmlessly
  return OwnMemory(static_cast<std::byte*>(memory), FreeMemory{bytes});
}

struct Slot {
  OwnMemory memory;  // null where blocks are supplied
  std::byte* block = nullptr;
  bool ahead = false;
};

}  // namespace

struct Ring::State {
  State(std::size_t bytes, std::int64_t max_ahead, std::optional<std::int64_t> limit, Memory memory,
        std::shared_ptr<SlotMemory> own)
      : slot_bytes(bytes),
        depth(max_ahead),
        max_slots(limit),
        supplied(memory == Memory::kSupplied),
        source(std::move(own)) {}

  const std::size_t slot_bytes;
  const std::int64_t depth;
  const std::optional<std::int64_t> max_slots;
  const bool supplied;
  const std::shared_ptr<SlotMemory> source;
  const Home home;

  // Readable without the lock, which nobody may be there to release in a forked child.
  std::atomic<std::int64_t> size{0};
  std::atomic<std::int64_t> grown{0};
  std::atomic<std::int64_t> in_use{0};

  mutable std::mutex mutex;  // guards everything below
  std::condition_variable room;
  std::deque<Slot> slots;   // a deque: slots never move
  std::vector<Slot*> free;  // the last one returned is lent first, while the caches know it
  std::vector<Slot*> used;  // their blocks belong to the supplier again
  std::int64_t ahead = 0;
  bool closed = false;

  bool has_room() const { return !free.empty() && ahead < depth; }

  // One more slot may be leased: wakes a thread for it, after the lock, which that thread needs.
  void wake(std::unique_lock<std::mutex>& lock) {
    const bool worthwhile = has_room();
    lock.unlock();
    if (worthwhile) room.notify_one();
  }

  void add_slot(OwnMemory memory, std::byte* block) {
    // So that a slot's return needs no memory; doubled, for a ring that grows may grow often.
    std::vector<Slot*>& returned = supplied ? used : free;
    if (returned.capacity() <= slots.size()) returned.reserve(2 * slots.size() + 1);
    slots.push_back(Slot{std::move(memory), block});
    free.push_back(&slots.back());
    ++size;
  }

  void add_own_slot() {
    OwnMemory memory = allocate(slot_bytes, source);
    std::byte* block = memory.get();
    add_slot(std::move(memory), block);
  }

  void give_back(Slot& slot) noexcept {
    if (home.left()) return;
    OwnMemory unneeded;  // released after the lock
    std::unique_lock lock(mutex);
    --in_use;
    if (std::exchange(slot.ahead, false)) --ahead;
    if (closed) {
      unneeded = std::move(slot.memory);
      return;
    }
    if (supplied) {
      used.push_back(&slot);
      return;
    }
    free.push_back(&slot);
    wake(lock);
  }
};

// What the last copy of a lease does.
struct Ring::Return {
  std::shared_ptr<State> state;
  Slot* slot;
  void operator()(std::byte*) const noexcept { state->give_back(*slot); }
};

Ring::Ring(std::size_t slot_bytes, std::int64_t depth, std::optional<std::int64_t> max_slots,
           Memory memory, std::shared_ptr<SlotMemory> source)
    : state_(std::make_shared<State>(slot_bytes, depth, max_slots, memory, std::move(source))) {
  if (memory == Memory::kSupplied) return;
  const std::int64_t initial = std::min(depth + 1, max_slots.value_or(depth + 1));
  while (state_->size < initial) state_->add_own_slot();
}

std::int64_t Ring::blocks_wanted() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->supplied || state_->closed) return 0;
  const auto free = static_cast<std::int64_t>(state_->free.size());
  return std::max<std::int64_t>(0, state_->depth + 1 - free - state_->ahead);
}

void Ring::supply(std::byte* block) {
  if (!state_->supplied) throw Error("a block was supplied to a ring that has memory of its own");
  std::unique_lock lock(state_->mutex);
  if (state_->used.empty()) {
    state_->add_slot(nullptr, block);
  } else {
    state_->used.back()->block = block;
    state_->free.push_back(state_->used.back());
    state_->used.pop_back();
  }
  state_->wake(lock);
}

bool Ring::has_room() const {
  const std::lock_guard lock(state_->mutex);
  return state_->has_room();
}

Lease Ring::lease(TimeSum& waited) {
  std::unique_lock lock(state_->mutex);
  if (!state_->closed && !state_->has_room()) {
    const Stopwatch watch(waited);
    state_->room.wait(lock, [&] { return state_->closed || state_->has_room(); });
  }
  return lend(lock);
}

Lease Ring::lease_at_once() {
  std::unique_lock lock(state_->mutex);
  return state_->has_room() ? lend(lock) : nullptr;
}

// A free slot, which there must be; null once closed.
Lease Ring::lend(std::unique_lock<std::mutex>& lock) {
  if (state_->closed) return nullptr;
  Slot* slot = state_->free.back();
  state_->free.pop_back();
  slot->ahead = true;
  ++state_->ahead;
  ++state_->in_use;
  lock.unlock();  // or Return, should this throw, would wait for it
  return Lease(slot->block, Return{state_, slot});
}

void Ring::hand_over(const Lease& slot) {
  std::unique_lock lock(state_->mutex);
  std::get_deleter<Return>(slot)->slot->ahead = false;
  --state_->ahead;
  state_->wake(lock);
}

void Ring::grow_if_all_held() {
  std::unique_lock lock(state_->mutex);
  if (state_->closed || !state_->free.empty() || state_->ahead > 0) return;
  if (state_->supplied) {
    throw Error("no block was supplied for the next batch; supply blocks_wanted() of them first");
  }
  if (state_->max_slots && state_->size >= *state_->max_slots) {
    throw RingExhausted(
        "every slot of the ring (max_slots = " + std::to_string(*state_->max_slots) +
        ") belongs to a batch that is still in use, so there is none to fill the "
        "next one into; let go of earlier batches, keep copies of the tensors "
        "(.clone()) instead of the batches, or raise max_slots");
  }
  state_->add_own_slot();
  ++state_->grown;
  state_->wake(lock);
}

void Ring::close() {
  std::vector<Slot*> idle;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    idle.swap(state_->free);
    state_->room.notify_all();
  }
  for (Slot* slot : idle) slot->memory.reset();
}

bool Ring::closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->closed;
}

Ring::Counters Ring::counters() const { return {state_->size, state_->grown, state_->in_use}; }

}  // namespace brimful
