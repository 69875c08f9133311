// Memory of the fake device: page-locked memory of the host, and blocks as torch's allocator lends
// them.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "device/fake_device.hpp"
#include "device/fake_parts.hpp"

namespace brimful::device {

std::byte* FakeDevice::allocate_pinned(std::size_t bytes) {
  const Lock lock(mutex_);
  call("allocate_pinned", true, true);
  std::vector<std::byte> memory(bytes + 256, kPoison);
  std::byte* begin = memory.data();
  begin += (256 - reinterpret_cast<std::uintptr_t>(begin) % 256) % 256;
  pinned_.emplace(begin, std::move(memory));
  return begin;
}

void FakeDevice::free_pinned(std::byte* memory) noexcept {
  const Lock lock(mutex_);
  contexts_.insert(thread().device);
  const auto found = pinned_.find(memory);
  if (found == pinned_.end()) return fault("pinned memory is released that is none");
  if (error_.empty()) {  // on a device that failed nothing runs any more
    access(kHost, {memory, found->second.size() - 256}, true, "the release of pinned memory");
  }
  pinned_.erase(found);
}

std::size_t FakeDevice::pinned_bytes() const {
  const Lock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [begin, memory] : pinned_) bytes += memory.size() - 256;
  return bytes;
}

// A block given back for this stream that all its users are done with, as far as the host can see.
FakeDevice::Block* FakeDevice::free_block(std::size_t bytes, const Stream& stream) {
  for (auto& [begin, block] : blocks_) {
    if (block->lent || block->stream != &stream || block->memory.size() != bytes) continue;
    if (std::any_of(block->awaited.begin(), block->awaited.end(),
                    [&](const Event& event) { return event.at > now_; })) {
      continue;
    }
    for (const Event& event : std::exchange(block->awaited, {})) learn(event);
    return block.get();
  }
  return nullptr;
}

std::byte* FakeDevice::allocate(std::size_t bytes, StreamHandle handle) {
  const Lock lock(mutex_);
  call("allocate", true, false);  // torch's allocator minds captures
  Stream& stream = stream_of(handle);
  Block* block = free_block(bytes, stream);
  if (block == nullptr) {
    auto fresh = std::make_unique<Block>();
    fresh->memory.assign(bytes, kPoison);
    fresh->stream = &stream;
    block = fresh.get();
    blocks_.emplace(block->memory.data(), std::move(fresh));
  }
  block->lent = true;
  const Range range = block->range();
  launch(handle, 0, "an allocation", {}, {&range, 1}, {});
  return block->memory.data();
}

void FakeDevice::record_stream(const std::byte* block, StreamHandle stream) {
  const Lock lock(mutex_);
  call("record_stream", false, false);
  if (forgets("record_stream")) return;
  blocks_.at(block)->users.insert(&stream_of(stream));
}

void FakeDevice::free(std::byte* memory) {
  const Lock lock(mutex_);
  call("free", false, false);
  Block& block = *blocks_.at(memory);
  for (Stream* user : std::exchange(block.users, {})) {
    block.awaited.push_back({.device = user->device,
                             .recorded = true,
                             .at = std::max(user->idle_from, now_),
                             .clock = races_.clock(user->actor)});
  }
  block.lent = false;
}

}  // namespace brimful::device
