// The way of batches to a device. A Transfer belongs to a loader: the copy stream, page-locked
// memory for slots, events, and the starvation meter. A Courier belongs to one stream of batches:
// it copies filled parcels into destinations in device memory and has their columns made there.
//
// Who does what: the consumer allocates destinations, for it alone may call torch, and is always
// one for each batch ahead of the threads. The thread that filled a parcel queues its copy, one,
// and one kernel, and later waits until the copy has read the slot; the consumer waits for nothing,
// its stream does. A slot is free once its batch is taken and its copy is done.
//
// Threads that use these have selected the device, but for destructors, which may run anywhere:
// they work in a thread of their own that does. In a forked child everything is left as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/home.hpp"
#include "device/api.hpp"
#include "device/event_pool.hpp"
#include "device/starvation.hpp"
#include "loader/parcel_fill.hpp"
#include "loader/ring.hpp"
#include "loader/slot_memory.hpp"

namespace brimful {

// Page-locked memory, kept for the next pass when a pass is over: to lock pages takes long.
class PinnedMemory : public SlotMemory {
 public:
  PinnedMemory(std::shared_ptr<device::DeviceApi> api, int device);
  ~PinnedMemory() override;

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory, std::size_t bytes) noexcept override;
  std::size_t bytes() const;  // in all

 private:
  const std::shared_ptr<device::DeviceApi> api_;
  const int device_;
  const Home home_;
  mutable std::mutex mutex_;  // guards everything below
  std::multimap<std::size_t, std::byte*> free_;
  std::size_t bytes_ = 0;
};

class Transfer {
 public:
  // Throws DeviceError where the device cannot be used.
  Transfer(std::shared_ptr<device::DeviceApi> api, int device);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  device::DeviceApi& api() { return *api_; }
  device::DeviceStream copies() const { return copies_; }
  device::StarvationMeter& meter() { return meter_; }
  device::EventPool& read_events() { return read_events_; }
  const std::shared_ptr<PinnedMemory>& memory() const { return memory_; }

 private:
  const std::shared_ptr<device::DeviceApi> api_;
  const device::DeviceStream copies_;
  const Home home_;
  device::StarvationMeter meter_;
  device::EventPool read_events_;  // a slot was read
  std::shared_ptr<PinnedMemory> memory_;
};

// A batch that is, or will be, on the device: the consumer's stream waits for `events`.
struct Sent {
  Sent(std::shared_ptr<Transfer> by, std::byte* to, device::CopyEvents copied)
      : transfer(std::move(by)), destination(to), events(copied) {}
  ~Sent() {
    if (!taken) transfer->meter().forget(events);
  }
  Sent(const Sent&) = delete;
  Sent& operator=(const Sent&) = delete;

  const std::shared_ptr<Transfer> transfer;
  std::byte* const destination;
  device::CopyEvents events;
  std::int64_t segments = 0;  // of its parcel's cu_seqlens, with which the destination begins
  bool taken = false;         // the events are the meter's
};

class Courier {
 public:
  Courier(std::shared_ptr<Transfer> transfer, DeviceLayout layout);
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  const DeviceLayout& layout() const { return layout_; }
  Transfer& transfer() { return *transfer_; }

  // What a thread that fills and sends begins with.
  void enter_thread() const;
  // Memory of the device, of layout().bytes() bytes, for one batch. The caller keeps it until the
  // batch is taken, or the courier gone.
  void add_destination(std::byte* destination);
  FilledParcel fill(const BatchSpec& spec, const ReadConfig& reading, const Lease& slot) const;
  // Queues what makes a batch of a filled parcel.
  std::shared_ptr<Sent> send(const FilledParcel& parcel, const Lease& slot);
  // Lets go of slots that were read; where it waits, of all that were sent before.
  void settle(bool waits);

 private:
  struct Reading {
    Lease slot;
    device::EventHandle done;
  };
  std::byte* take_destination();

  const std::shared_ptr<Transfer> transfer_;
  const DeviceLayout layout_;
  const Home home_;
  std::mutex mutex_;  // guards everything below
  std::deque<std::byte*> destinations_;
  std::vector<Reading> readings_;
};

}  // namespace brimful
