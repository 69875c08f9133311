// A device that is none: streams, events and copies in virtual time, for tests on any machine. The
// host's clock moves only by advance(), by the cost of calls, and where a call waits. Work on a
// stream takes the durations given; its reads and writes happen when it does, so that what was
// overwritten too early, or read too early, is really wrong: what a queued operation will write
// holds kPoison from when it starts, and so does memory that was never written.
//
// It also knows what a real device hides: accesses that nothing orders, helper threads that use a
// device they have not selected, calls that would end a capture. These are faults(), in the order
// they were found. The host is one actor, whatever its number of threads: races between threads
// are another tool's to find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/api.hpp"
#include "device/race_detector.hpp"

namespace brimful::device {

struct FakeConfig {
  int devices = 1;
  double call_seconds = 0;       // of host time, for each call
  double copy_seconds = 0;       // of a copy to the device, whatever its size
  double copy_byte_seconds = 0;  // and for each byte
  double expand_seconds = 0;     // of a kernel that makes columns
  // Calls that do nothing, as if whoever should make them did not: "record", "wait", "sleep_until",
  // "record_stream" or "select_device". So a test shows that it would find them missing.
  std::set<std::string> forgotten;
};

class FakeDevice : public DeviceApi {
 public:
  static constexpr std::byte kPoison{0xdd};

  explicit FakeDevice(FakeConfig config);
  ~FakeDevice() override;

  void select_device(int device) override;
  CaptureMode exchange_capture_mode(CaptureMode mode) noexcept override;
  StreamHandle create_stream() override;
  void destroy_stream(StreamHandle stream) noexcept override;
  void synchronize(StreamHandle stream) override;
  bool is_capturing(StreamHandle stream) override;
  EventHandle create_event(EventUse use) override;
  void destroy_event(EventHandle event) noexcept override;
  void record(EventHandle event, StreamHandle stream) override;
  void wait(StreamHandle stream, EventHandle event) override;
  bool reached(EventHandle event) override;
  void sleep_until(EventHandle event) override;
  double seconds_between(EventHandle first, EventHandle last) override;
  std::byte* allocate_pinned(std::size_t bytes) override;
  void free_pinned(std::byte* memory) noexcept override;
  void copy_to_device(void* to, const std::byte* from, std::size_t bytes,
                      StreamHandle stream) override;
  void expand(const ExpandKernel& kernel, DeviceStream stream) override;
  double now() const override;
  void host_writes(const std::byte* memory, std::size_t bytes) override;

  // Work of `seconds` on a stream: `body`, which may be empty, runs at its end.
  void launch(StreamHandle stream, double seconds, const std::string& what,
              std::span<const Range> reads, std::span<const Range> writes,
              std::function<void()> body);
  // What memory holds when all work of the stream so far is done; waits for that.
  std::vector<std::byte> read(StreamHandle stream, Range range);

  // Memory of the device as torch's allocator gives it: a freed block is lent again for the same
  // stream at once, unless others were recorded, whose work until the release is waited for.
  std::byte* allocate(std::size_t bytes, StreamHandle stream);
  void record_stream(const std::byte* block, StreamHandle stream);
  void free(std::byte* block);

  double time_of(EventHandle event) const;  // when it was, or will be, reached
  void advance(double seconds);
  void begin_capture(StreamHandle stream, CaptureMode mode);
  void end_capture(StreamHandle stream);

  int selected_device() const;     // of this thread
  void go_back(int device);        // as torch does: selected, and no context made
  std::set<int> contexts() const;  // devices that this process has a context on
  std::size_t pinned_bytes() const;
  std::int64_t count(const std::string& call) const;  // of calls of this name
  std::set<std::string> sleepers() const;             // names of threads that waited for the device
  void fail(std::string error);                       // from now on every call does that may
  std::vector<std::string> faults() const;

 private:
  struct Stream;
  struct Event;
  struct Block;
  struct Thread;
  struct Action {
    double at;
    std::int64_t order;
    std::function<void()> run;
    bool operator>(const Action& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  using Lock = std::lock_guard<std::recursive_mutex>;

  Thread& thread() const;
  bool forgets(const char* name) const { return config_.forgotten.contains(name); }
  void call(const char* name, bool needs_context, bool unsafe_in_capture);
  void run_until(double time);
  Stream& stream_of(StreamHandle handle);
  Event& event_of(EventHandle handle) const;
  Stream& add_stream(int device, std::string name);
  void fault(std::string what) { faults_.push_back(std::move(what)); }
  void queue(Stream& stream, double seconds, std::function<void()> start,
             std::function<void()> finish);
  void access(std::size_t actor, Range range, bool writes, const std::string& what);
  void learn(const Event& event);
  Block* free_block(std::size_t bytes, const Stream& stream);

  const FakeConfig config_;
  const std::int64_t id_;
  mutable std::recursive_mutex mutex_;  // guards everything below
  double now_ = 0;
  std::int64_t order_ = 0;
  std::map<std::string, std::int64_t> calls_;
  std::set<std::string> sleepers_;
  std::string error_;
  std::priority_queue<Action, std::vector<Action>, std::greater<>> actions_;
  RaceDetector races_;
  std::map<void*, std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> default_streams_;  // by device
  std::map<void*, std::unique_ptr<Event>> events_;
  std::map<const std::byte*, std::vector<std::byte>> pinned_;
  std::map<const std::byte*, std::unique_ptr<Block>> blocks_;
  std::set<int> contexts_;
  std::vector<std::string> faults_;
};

}  // namespace brimful::device
