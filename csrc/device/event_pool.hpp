// Events that are used again and again: to make one costs more than to record it, and a batch needs
// four. They belong to one device, which the threads that take them have selected. Any thread may
// take and give back.
#pragma once

#include <mutex>
#include <vector>

#include "core/home.hpp"
#include "device/api.hpp"

namespace brimful::device {

class EventPool {
 public:
  EventPool(DeviceApi& api, EventUse use) : api_(api), use_(use) {}

  EventHandle take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        EventHandle event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    return api_.create_event(use_);
  }

  // In a forked child, where the lock may be held by a thread that is not there, it is forgotten.
  void give(EventHandle event) {
    if (home_.left()) return;
    const std::scoped_lock lock(mutex_);
    free_.push_back(event);
  }

  // Destroys those given back. They are not destroyed with the pool, which may go in a thread that
  // has selected another device.
  void clear() {
    const std::scoped_lock lock(mutex_);
    for (EventHandle event : free_) api_.destroy_event(event);
    free_.clear();
  }

 private:
  DeviceApi& api_;
  const EventUse use_;
  const Home home_;
  std::mutex mutex_;
  std::vector<EventHandle> free_;
};

}  // namespace brimful::device
