#include "device/fake_device.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "device/fake_parts.hpp"
#include "device/host_kernels.hpp"

namespace brimful::device {
namespace {

std::int64_t next_id() {
  static std::atomic<std::int64_t> last{0};
  return ++last;
}

std::string thread_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

void poison(Range range) {
  std::memset(const_cast<std::byte*>(range.begin), std::to_integer<int>(FakeDevice::kPoison),
              range.bytes);
}

}  // namespace

FakeDevice::FakeDevice(FakeConfig config) : config_(std::move(config)), id_(next_id()) {
  races_.add_actor("host");
  for (int device = 0; device < config_.devices; ++device) {
    default_streams_.push_back(&add_stream(device, "null stream of " + std::to_string(device)));
  }
}

FakeDevice::~FakeDevice() = default;

FakeDevice::Thread& FakeDevice::thread() const {
  thread_local std::map<std::int64_t, Thread> threads;  // by device under test
  return threads[id_];
}

FakeDevice::Stream& FakeDevice::add_stream(int device, std::string name) {
  auto stream = std::make_unique<Stream>(
      Stream{.device = device, .actor = races_.add_actor(std::move(name)), .captured_by = {}});
  Stream& added = *stream;
  streams_.emplace(&added, std::move(stream));
  return added;
}

// What every call begins with.
void FakeDevice::call(const char* name, bool needs_context, bool unsafe_in_capture) {
  ++calls_[name];
  if (!error_.empty()) throw DeviceError(std::string(name) + " failed: " + error_);
  run_until(now_ + config_.call_seconds);
  races_.clock(kHost).tick(kHost);
  const Thread& mine = thread();
  if (needs_context) {
    contexts_.insert(mine.device);
    const std::string who = thread_name();
    if (who.starts_with("brimful-") && !mine.selected) {
      fault(who + " calls " + name + " before it has selected a device");
    }
  }
  if (!unsafe_in_capture || mine.mode == CaptureMode::kRelaxed) return;
  for (const auto& [handle, stream] : streams_) {
    if (!stream->captured || stream->capture_mode == CaptureMode::kRelaxed) continue;
    const bool own = stream->captured_by == std::this_thread::get_id();
    if (own ||
        (stream->capture_mode == CaptureMode::kGlobal && mine.mode == CaptureMode::kGlobal)) {
      fault(std::string(name) + " ends the capture of a stream");
    }
  }
}

void FakeDevice::run_until(double time) {
  while (!actions_.empty() && actions_.top().at <= time) {
    const Action next = actions_.top();
    actions_.pop();
    next.run();
  }
  now_ = std::max(now_, time);
}

FakeDevice::Stream& FakeDevice::stream_of(StreamHandle handle) {
  if (handle == nullptr) return *default_streams_[static_cast<std::size_t>(thread().device)];
  const auto found = streams_.find(handle);
  if (found == streams_.end() || found->second->destroyed) throw DeviceError("no such stream");
  return *found->second;
}

FakeDevice::Event& FakeDevice::event_of(EventHandle handle) const {
  const auto found = events_.find(handle);
  if (found == events_.end()) throw DeviceError("no such event");
  return *found->second;
}

void FakeDevice::queue(Stream& stream, double seconds, std::function<void()> start,
                       std::function<void()> finish) {
  races_.clock(stream.actor).join(races_.clock(kHost));
  const double begin = std::max(stream.idle_from, now_);
  stream.idle_from = begin + seconds;
  actions_.push({begin, order_++, std::move(start)});
  actions_.push({stream.idle_from, order_++, std::move(finish)});
}

void FakeDevice::access(std::size_t actor, Range range, bool writes, const std::string& what) {
  std::string wrong = races_.access(actor, range, writes, what);
  if (!wrong.empty()) fault(std::move(wrong));
}

// The host has seen that the event was reached.
void FakeDevice::learn(const Event& event) { races_.clock(kHost).join(event.clock); }

void FakeDevice::select_device(int device) {
  const Lock lock(mutex_);
  if (device < 0 || device >= config_.devices) throw DeviceError("no such device");
  if (forgets("select_device")) return;
  thread() = {.device = device, .selected = true, .mode = thread().mode};
  contexts_.insert(device);
}

CaptureMode FakeDevice::exchange_capture_mode(CaptureMode mode) noexcept {
  const Lock lock(mutex_);
  return std::exchange(thread().mode, mode);
}

StreamHandle FakeDevice::create_stream() {
  const Lock lock(mutex_);
  call("create_stream", true, false);
  return &add_stream(thread().device, "stream " + std::to_string(streams_.size()));
}

void FakeDevice::destroy_stream(StreamHandle stream) noexcept {
  const Lock lock(mutex_);
  // What is queued still runs, as in CUDA; the handle is good for nothing any more.
  const auto found = streams_.find(stream);
  if (found == streams_.end() || std::exchange(found->second->destroyed, true)) {
    fault("a stream is destroyed that does not exist");
  }
}

void FakeDevice::synchronize(StreamHandle handle) {
  const Lock lock(mutex_);
  call("synchronize", true, true);
  sleepers_.insert(thread_name());
  const Stream& stream = stream_of(handle);
  run_until(stream.idle_from);
  races_.clock(kHost).join(races_.clock(stream.actor));
}

bool FakeDevice::is_capturing(StreamHandle stream) {
  const Lock lock(mutex_);
  call("is_capturing", true, false);
  return stream_of(stream).captured;
}

EventHandle FakeDevice::create_event(EventUse) {
  const Lock lock(mutex_);
  call("create_event", true, false);
  auto event = std::make_unique<Event>(Event{.device = thread().device, .clock = {}});
  void* handle = event.get();
  events_.emplace(handle, std::move(event));
  return handle;
}

void FakeDevice::destroy_event(EventHandle event) noexcept {
  const Lock lock(mutex_);
  if (events_.erase(event) == 0) fault("an event is destroyed that does not exist");
}

void FakeDevice::record(EventHandle handle, StreamHandle to) {
  const Lock lock(mutex_);
  call("record", true, false);
  if (forgets("record")) return;
  Event& event = event_of(handle);
  Stream& stream = stream_of(to);
  if (event.device != stream.device) {
    throw DeviceError("an event of device " + std::to_string(event.device) +
                      " is recorded on a stream of device " + std::to_string(stream.device));
  }
  if (stream.captured) fault("an event is recorded on a captured stream");
  races_.clock(stream.actor).join(races_.clock(kHost));
  stream.idle_from = std::max(stream.idle_from, now_);
  event.recorded = true;
  event.at = stream.idle_from;
  event.clock = races_.clock(stream.actor);
}

void FakeDevice::wait(StreamHandle handle, EventHandle for_event) {
  const Lock lock(mutex_);
  call("wait", true, false);
  if (forgets("wait")) return;
  Stream& stream = stream_of(handle);
  const Event& event = event_of(for_event);
  if (stream.captured) fault("a captured stream waits for an event from outside of the capture");
  if (!event.recorded) return;
  stream.idle_from = std::max({stream.idle_from, now_, event.at});
  races_.clock(stream.actor).join(event.clock);
}

bool FakeDevice::reached(EventHandle handle) {
  const Lock lock(mutex_);
  call("reached", true, true);
  const Event& event = event_of(handle);
  if (!event.recorded) return true;
  if (event.at > now_) return false;
  learn(event);
  return true;
}

void FakeDevice::sleep_until(EventHandle handle) {
  const Lock lock(mutex_);
  call("sleep_until", true, true);
  if (forgets("sleep_until")) return;
  sleepers_.insert(thread_name());
  const Event& event = event_of(handle);
  if (!event.recorded) return;
  run_until(event.at);
  learn(event);
}

double FakeDevice::seconds_between(EventHandle first, EventHandle last) {
  const Lock lock(mutex_);
  call("seconds_between", true, true);
  if (forgets("record")) return 0;
  const Event& from = event_of(first);
  const Event& to = event_of(last);
  if (!from.recorded || !to.recorded) throw DeviceError("an event was never recorded");
  if (from.at > now_ || to.at > now_) throw DeviceError("an event was not reached yet");
  return to.at - from.at;
}

void FakeDevice::copy_to_device(void* to, const std::byte* from, std::size_t bytes,
                                StreamHandle stream) {
  const Lock lock(mutex_);
  ++calls_["copy_to_device"];
  const Range source{from, bytes};
  const Range target{static_cast<std::byte*>(to), bytes};
  const double seconds =
      config_.copy_seconds + config_.copy_byte_seconds * static_cast<double>(bytes);
  launch(stream, seconds, "a copy", {&source, 1}, {&target, 1},
         [to, from, bytes] { std::memcpy(to, from, bytes); });
}

void FakeDevice::expand(const ExpandKernel& kernel, DeviceStream stream) {
  const Lock lock(mutex_);
  ++calls_["expand"];
  if (stream_of(stream.handle).device != stream.device) {
    throw DeviceError("a kernel for device " + std::to_string(stream.device) +
                      " is launched on a stream of another");
  }
  const Parcel& parcel = kernel.parcel;
  const auto* block = reinterpret_cast<const std::byte*>(parcel.cu_seqlens);
  const std::byte* end = parcel.tokens + parcel.total * parcel.token_bytes;
  const Range read{block, static_cast<std::size_t>(end - block)};
  std::vector<Range> written;
  const auto column = [&](const auto* begin) {
    if (begin == nullptr) return;
    const std::size_t bytes = static_cast<std::size_t>(kernel.slots) * sizeof(*begin);
    written.push_back({reinterpret_cast<const std::byte*>(begin), bytes});
  };
  column(kernel.out.input_ids);
  column(kernel.out.labels);
  column(kernel.out.shift_labels);
  column(kernel.out.position_ids);
  column(kernel.out.document_ids);
  column(kernel.out.loss_weights);
  launch(stream.handle, config_.expand_seconds, "an expansion", {&read, 1}, written,
         [kernel] { run_on_host(kernel, TurnOrder::kForward, 0xdd); });
}

double FakeDevice::now() const {
  const Lock lock(mutex_);
  return now_;
}

void FakeDevice::host_writes(const std::byte* memory, std::size_t bytes) {
  const Lock lock(mutex_);
  access(kHost, {memory, bytes}, true, "a fill");
}

void FakeDevice::launch(StreamHandle handle, double seconds, const std::string& what,
                        std::span<const Range> reads, std::span<const Range> writes,
                        std::function<void()> body) {
  const Lock lock(mutex_);
  call("launch", true, false);
  Stream& stream = stream_of(handle);
  std::vector<Range> written(writes.begin(), writes.end());
  queue(
      stream, seconds, [written] { std::for_each(written.begin(), written.end(), poison); },
      body ? std::move(body) : [] {});
  for (const Range& range : reads) access(stream.actor, range, false, what);
  for (const Range& range : writes) access(stream.actor, range, true, what);
}

std::vector<std::byte> FakeDevice::read(StreamHandle handle, Range range) {
  const Lock lock(mutex_);
  std::vector<std::byte> found(range.bytes);
  launch(handle, 0, "a read", {&range, 1}, {},
         [&] { std::memcpy(found.data(), range.begin, range.bytes); });
  synchronize(handle);
  return found;
}

double FakeDevice::time_of(EventHandle event) const {
  const Lock lock(mutex_);
  return event_of(event).at;
}

void FakeDevice::advance(double seconds) {
  const Lock lock(mutex_);
  run_until(now_ + seconds);
}

void FakeDevice::begin_capture(StreamHandle handle, CaptureMode mode) {
  const Lock lock(mutex_);
  Stream& stream = stream_of(handle);
  stream.captured = true;
  stream.capture_mode = mode;
  stream.captured_by = std::this_thread::get_id();
}

void FakeDevice::end_capture(StreamHandle handle) {
  const Lock lock(mutex_);
  stream_of(handle).captured = false;
}

int FakeDevice::selected_device() const {
  const Lock lock(mutex_);
  return thread().device;
}

void FakeDevice::go_back(int device) {
  const Lock lock(mutex_);
  thread().device = device;
}

std::set<int> FakeDevice::contexts() const {
  const Lock lock(mutex_);
  return contexts_;
}

std::int64_t FakeDevice::count(const std::string& call) const {
  const Lock lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

std::set<std::string> FakeDevice::sleepers() const {
  const Lock lock(mutex_);
  return sleepers_;
}

void FakeDevice::fail(std::string error) {
  const Lock lock(mutex_);
  error_ = std::move(error);
  actions_ = {};  // what was queued does not happen any more
}

std::vector<std::string> FakeDevice::faults() const {
  const Lock lock(mutex_);
  return faults_;
}

}  // namespace brimful::device
