// The table of functions that everything asks of a device: streams, events, pinned memory, copies.
// The CUDA backend fills it from the runtime; the fake device fills it with virtual time and checks
// every access. A call that fails throws DeviceError, with its name, the code and the text; those
// that destroy and release say nothing.
//
// A thread works on the device that it has selected; a new one, as in CUDA, begins with device 0,
// and its first call may make a context there. So a thread of ours selects its device before any
// other call, and none selects a device and goes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "device/kernels.hpp"

namespace brimful::device {

// As the CUDA runtime has them. The null stream is the default one of the device selected.
using StreamHandle = void*;
using EventHandle = void*;

enum class EventUse {
  kTime,  // tells when it was reached
  kWait,  // a thread of the host may sleep until it is reached
};

// Whether calls that a stream's capture into a graph forbids are refused in this thread, which they
// are unless it is relaxed. Ours never touch a captured stream, so they may go on.
enum class CaptureMode { kGlobal, kThreadLocal, kRelaxed };

class DeviceApi {
 public:
  virtual ~DeviceApi() = default;

  virtual void select_device(int device) = 0;
  virtual CaptureMode exchange_capture_mode(CaptureMode mode) noexcept = 0;

  // A stream that does not wait for the null stream.
  virtual StreamHandle create_stream() = 0;
  virtual void destroy_stream(StreamHandle stream) noexcept = 0;
  virtual void synchronize(StreamHandle stream) = 0;
  virtual bool is_capturing(StreamHandle stream) = 0;

  virtual EventHandle create_event(EventUse use) = 0;
  virtual void destroy_event(EventHandle event) noexcept = 0;
  virtual void record(EventHandle event, StreamHandle stream) = 0;
  virtual void wait(StreamHandle stream, EventHandle event) = 0;  // work queued from now on does
  // Whether the event was reached. One that was never recorded counts as reached, as in CUDA.
  virtual bool reached(EventHandle event) = 0;
  virtual void sleep_until(EventHandle event) = 0;
  // Between two events that were reached, the later one last.
  virtual double seconds_between(EventHandle first, EventHandle last) = 0;

  // Page-locked memory of the host, at a 256-byte boundary at least.
  virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(std::byte* memory) noexcept = 0;
  virtual void copy_to_device(void* to, const std::byte* from, std::size_t bytes,
                              StreamHandle stream) = 0;
  virtual void expand(const ExpandKernel& kernel, DeviceStream stream) = 0;

  // Seconds of the host's clock.
  virtual double now() const = 0;
  // Tells a device that checks accesses of one by the host, which it cannot see.
  virtual void host_writes(const std::byte* memory, std::size_t bytes) {
    static_cast<void>(memory);
    static_cast<void>(bytes);
  }

  // The stream that batches are copied on, for all loaders: one of each device, made when it is
  // asked for first, by a thread that has selected the device, and kept. Memory of torch's belongs
  // to the stream that it was allocated for: a stream for each pass would leave some behind.
  StreamHandle copy_stream(int device) {
    const std::scoped_lock lock(copy_streams_mutex_);
    StreamHandle& stream = copy_streams_[device];
    if (stream == nullptr) stream = create_stream();
    return stream;
  }

 private:
  std::mutex copy_streams_mutex_;
  std::map<int, StreamHandle> copy_streams_;
};

// The CUDA runtime. Throws DeviceError, which says why not, where there is none to use.
DeviceApi& cuda();

// Calls of the CUDA runtime that were made in this process, for tests: importing, and work without
// a device, make none.
std::int64_t cuda_calls();

// For as long as it lives, calls of this thread are not refused because some stream is captured.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(DeviceApi& api)
      : api_(api), before_(api.exchange_capture_mode(CaptureMode::kRelaxed)) {}
  ~RelaxedCapture() { api_.exchange_capture_mode(before_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  DeviceApi& api_;
  CaptureMode before_;
};

// What a thread of ours begins with.
inline void enter_thread(DeviceApi& api, int device) {
  api.select_device(device);
  api.exchange_capture_mode(CaptureMode::kRelaxed);
}

}  // namespace brimful::device
