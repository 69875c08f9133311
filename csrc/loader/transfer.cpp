#include "loader/transfer.hpp"

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "loader/threads.hpp"

namespace brimful {

using device::DeviceApi;
using device::EventHandle;
using device::EventUse;

namespace {

// Runs f in a thread that has selected the device. The calling one may be any, and to select a
// device there and go back would make a context on the one it had before. What fails then is not
// to be helped: f is the end of something.
template <class F>
void in_thread_of(DeviceApi& api, int device, const F& f) noexcept {
  try {
    start_thread("brimful-end", [&] {
      try {
        enter_thread(api, device);
        f();
      } catch (const Error&) {  // the device is lost, and what it held with it
        return;
      }
    });
  } catch (const std::system_error&) {  // no thread is to be had: the memory stays
    return;
  }
}

}  // namespace

PinnedMemory::PinnedMemory(std::shared_ptr<DeviceApi> api, int device)
    : api_(std::move(api)), device_(device) {}

PinnedMemory::~PinnedMemory() {
  if (home_.left() || free_.empty()) return;
  in_thread_of(*api_, device_, [&] {
    for (const auto& [bytes, memory] : free_) api_->free_pinned(memory);
  });
}

std::byte* PinnedMemory::allocate(std::size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (auto node = free_.extract(bytes)) return node.mapped();
  }
  std::byte* memory = api_->allocate_pinned(bytes);
  const std::scoped_lock lock(mutex_);
  bytes_ += bytes;
  return memory;
}

void PinnedMemory::release(std::byte* memory, std::size_t bytes) noexcept {
  if (home_.left()) return;
  const std::scoped_lock lock(mutex_);
  free_.emplace(bytes, memory);
}

std::size_t PinnedMemory::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

Transfer::Transfer(std::shared_ptr<DeviceApi> api, int device)
    : api_(std::move(api)),
      copies_{device, api_->copy_stream(device)},
      meter_(*api_),
      read_events_(*api_, EventUse::kWait),
      memory_(std::make_shared<PinnedMemory>(api_, device)) {}

Transfer::~Transfer() {
  if (home_.left()) return;
  in_thread_of(*api_, copies_.device, [&] {
    meter_.clear();
    read_events_.clear();
  });
}

Courier::Courier(std::shared_ptr<Transfer> transfer, DeviceLayout layout)
    : transfer_(std::move(transfer)), layout_(std::move(layout)) {}

Courier::~Courier() {
  if (home_.left() || readings_.empty()) return;
  in_thread_of(transfer_->api(), transfer_->copies().device, [&] { settle(/*waits=*/true); });
}

void Courier::enter_thread() const {
  device::enter_thread(transfer_->api(), transfer_->copies().device);
}

FilledParcel Courier::fill(const BatchSpec& spec, const ReadConfig& reading,
                           const Lease& slot) const {
  transfer_->api().host_writes(slot.get(), layout_.parcel_bytes());
  return fill_parcel(spec, layout_.layout().config(), reading, slot.get());
}

void Courier::add_destination(std::byte* destination) {
  const std::scoped_lock lock(mutex_);
  destinations_.push_back(destination);
}

std::byte* Courier::take_destination() {
  const std::scoped_lock lock(mutex_);
  if (destinations_.empty()) throw Error("no memory of the device was given for the next batch");
  std::byte* destination = destinations_.front();
  destinations_.pop_front();
  return destination;
}

std::shared_ptr<Sent> Courier::send(const FilledParcel& parcel, const Lease& slot) {
  DeviceApi& api = transfer_->api();
  const device::DeviceStream copies = transfer_->copies();
  const auto bytes = static_cast<std::size_t>(device::parcel_offsets(parcel.shape).bytes);
  std::byte* destination = take_destination();
  const auto sent =
      std::make_shared<Sent>(transfer_, destination, transfer_->meter().begin_copy(copies.handle));
  sent->segments = parcel.shape.segments;
  const EventHandle read = transfer_->read_events().take();
  api.copy_to_device(destination, slot.get(), bytes, copies.handle);
  try {
    api.record(read, copies.handle);
    const std::scoped_lock lock(mutex_);
    readings_.push_back({slot, read});
  } catch (...) {
    api.synchronize(copies.handle);  // nobody else will know that the slot is being read
    throw;
  }
  api.expand(layout_.expand(parcel.shape, parcel.row, destination), copies);
  transfer_->meter().end_copy(sent->events, copies.handle);
  return sent;
}

void Courier::settle(bool waits) {
  std::vector<Reading> readings;
  {
    const std::scoped_lock lock(mutex_);
    readings.swap(readings_);
  }
  std::vector<Reading> left;
  for (Reading& reading : readings) {
    if (waits) {
      transfer_->api().sleep_until(reading.done);
    } else if (!transfer_->api().reached(reading.done)) {
      left.push_back(std::move(reading));
      continue;
    }
    transfer_->read_events().give(reading.done);
    reading.slot.reset();
  }
  const std::scoped_lock lock(mutex_);
  readings_.insert(readings_.end(), std::make_move_iterator(left.begin()),
                   std::make_move_iterator(left.end()));
}

}  // namespace brimful
