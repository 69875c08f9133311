// What the fake device is made of, for the files that it is written in.
#pragma once

#include <set>
#include <thread>
#include <vector>

#include "device/fake_device.hpp"

namespace brimful::device {

inline constexpr std::size_t kHost = 0;  // actor

struct FakeDevice::Stream {
  int device;
  std::size_t actor;
  double idle_from = 0;  // when all that is queued will be done
  bool destroyed = false;
  bool captured = false;
  CaptureMode capture_mode = CaptureMode::kGlobal;
  std::thread::id captured_by;
};

struct FakeDevice::Event {
  int device;
  bool recorded = false;
  double at = 0;
  VectorClock clock;
};

// A block of device memory: lent, or free and awaiting the events of streams that used it.
struct FakeDevice::Block {
  std::vector<std::byte> memory;
  Stream* stream;
  std::set<Stream*> users;
  std::vector<Event> awaited;
  bool lent = true;
  Range range() const { return {memory.data(), memory.size()}; }
};

// What the runtime keeps for each thread.
struct FakeDevice::Thread {
  int device = 0;
  bool selected = false;
  CaptureMode mode = CaptureMode::kGlobal;
};

}  // namespace brimful::device
