// Finds accesses of memory that nothing orders. Every actor (the host, each stream of a device) has
// a vector clock: how far it knows every other actor to be. Two accesses of the same byte, at least
// one of them a write, are a race unless the later actor knew of the earlier access. So a missing
// wait is found whatever the timing was. Not for threads: the caller holds a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace brimful::device {

class VectorClock {
 public:
  std::int64_t of(std::size_t actor) const { return actor < ticks_.size() ? ticks_[actor] : 0; }
  void tick(std::size_t actor);
  // Knows from now on what `other` knows.
  void join(const VectorClock& other);

 private:
  std::vector<std::int64_t> ticks_;
};

// Bytes of memory.
struct Range {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  const std::byte* end() const { return begin + bytes; }
};

class RaceDetector {
 public:
  // One more actor; its number.
  std::size_t add_actor(std::string name);
  VectorClock& clock(std::size_t actor) { return clocks_[actor]; }

  // Says what is wrong with an access, in a sentence; nothing is, where that is empty. `what` names
  // it.
  std::string access(std::size_t actor, Range range, bool writes, const std::string& what);

 private:
  struct Access {
    Range range;
    bool writes;
    std::size_t actor;
    std::int64_t tick;
    std::string what;
  };

  std::vector<std::string> names_;
  std::vector<VectorClock> clocks_;
  std::vector<Access> accesses_;  // those that a later one may race with
};

}  // namespace brimful::device
