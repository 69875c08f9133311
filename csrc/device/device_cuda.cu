// The device layer of a build with CUDA. The runtime is linked statically and loads the driver at
// the first call made here, so that importing the module needs no driver and touches no device.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <string>

#include "core/error.hpp"
#include "device/api.hpp"
#include "device/device.hpp"

namespace brimful::device {
namespace {

std::atomic<std::int64_t> calls{0};

std::string version_name(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string described(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + " (" + std::to_string(static_cast<int>(status)) +
         ", " + cudaGetErrorString(status) + ")";
}

// Counts a call, passes its status on, and takes it away: it is reported here, so it must not
// surface in a later call's check.
cudaError_t made(cudaError_t status) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status;
}

void check(cudaError_t status, const char* call) {
  if (made(status) == cudaSuccess) return;
  throw DeviceError(std::string(call) + " failed: " + described(status) +
                    ". An error of the device surfaces in whichever call comes next: "
                    "CUDA_LAUNCH_BLOCKING=1 tells where it arose");
}

cudaStream_t stream_of(StreamHandle handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t event_of(EventHandle handle) { return static_cast<cudaEvent_t>(handle); }

class Cuda : public DeviceApi {
 public:
  void select_device(int device) override { check(cudaSetDevice(device), "cudaSetDevice"); }

  CaptureMode exchange_capture_mode(CaptureMode mode) noexcept override {
    cudaStreamCaptureMode exchanged = mode == CaptureMode::kGlobal ? cudaStreamCaptureModeGlobal
                                      : mode == CaptureMode::kThreadLocal
                                          ? cudaStreamCaptureModeThreadLocal
                                          : cudaStreamCaptureModeRelaxed;
    made(cudaThreadExchangeStreamCaptureMode(&exchanged));
    return exchanged == cudaStreamCaptureModeGlobal        ? CaptureMode::kGlobal
           : exchanged == cudaStreamCaptureModeThreadLocal ? CaptureMode::kThreadLocal
                                                           : CaptureMode::kRelaxed;
  }

  StreamHandle create_stream() override {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
  }
  void destroy_stream(StreamHandle stream) noexcept override {
    made(cudaStreamDestroy(stream_of(stream)));
  }
  void synchronize(StreamHandle stream) override {
    check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
  }
  bool is_capturing(StreamHandle stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t answer = made(cudaStreamIsCapturing(stream_of(stream), &status));
    // The null stream cannot be asked, or used, while a stream that waits for it is captured.
    if (answer == cudaErrorStreamCaptureImplicit) return true;
    check(answer, "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  EventHandle create_event(EventUse use) override {
    cudaEvent_t event = nullptr;
    const unsigned flags =
        use == EventUse::kTime ? cudaEventDefault : cudaEventBlockingSync | cudaEventDisableTiming;
    check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
    return event;
  }
  void destroy_event(EventHandle event) noexcept override {
    made(cudaEventDestroy(event_of(event)));
  }
  void record(EventHandle event, StreamHandle stream) override {
    check(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
  }
  void wait(StreamHandle stream, EventHandle event) override {
    check(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "cudaStreamWaitEvent");
  }
  bool reached(EventHandle event) override {
    const cudaError_t status = made(cudaEventQuery(event_of(event)));
    if (status == cudaErrorNotReady) return false;
    check(status, "cudaEventQuery");
    return true;
  }
  void sleep_until(EventHandle event) override {
    check(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize");
  }
  double seconds_between(EventHandle first, EventHandle last) override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event_of(first), event_of(last)),
          "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }

  std::byte* allocate_pinned(std::size_t bytes) override {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    return static_cast<std::byte*>(memory);
  }
  void free_pinned(std::byte* memory) noexcept override { made(cudaFreeHost(memory)); }
  void copy_to_device(void* to, const std::byte* from, std::size_t bytes,
                      StreamHandle stream) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(stream)),
          "cudaMemcpyAsync");
  }

  void expand(const ExpandKernel& kernel, DeviceStream stream) override {
    calls.fetch_add(1, std::memory_order_relaxed);
    launch(kernel, stream);
  }

  double now() const override {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(time).count();
  }
};

}  // namespace

bool available() { return why_not().empty(); }

std::string why_not() {
  int count = 0;
  const cudaError_t status = made(cudaGetDeviceCount(&count));
  if (status == cudaSuccess && count > 0) return "";
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    return "The NVIDIA driver shows no device to this process: there is no GPU, or "
           "CUDA_VISIBLE_DEVICES hides it.";
  }
  if (status == cudaErrorInsufficientDriver) {
    // The runtime gives this code for both, and cannot tell them apart without a driver to ask.
    return "The NVIDIA driver is not installed, or is older than the CUDA " +
           version_name(CUDART_VERSION) + " that brimful was built with and needs an update.";
  }
  return "The NVIDIA driver did not start: " + described(status) + ".";
}

DeviceApi& cuda() {
  if (const std::string reason = why_not(); !reason.empty()) throw DeviceError(reason);
  static Cuda table;
  return table;
}

std::int64_t cuda_calls() { return calls.load(std::memory_order_relaxed); }

}  // namespace brimful::device
