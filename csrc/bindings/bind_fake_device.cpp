// The fake device and the starvation meter, for tests: streams, events and memory are numbers.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/released_gil.hpp"
#include "device/fake_device.hpp"
#include "device/starvation.hpp"

namespace brimful {
namespace py = pybind11;
namespace {

using namespace device;

using Handle = std::uintptr_t;
using Ranges = std::vector<std::pair<Handle, std::size_t>>;

StreamHandle handle(Handle number) { return reinterpret_cast<void*>(number); }
Handle number(const void* handle) { return reinterpret_cast<Handle>(handle); }

std::byte* memory(Handle address) { return reinterpret_cast<std::byte*>(address); }

std::vector<Range> ranges(const Ranges& given) {
  std::vector<Range> found;
  found.reserve(given.size());
  for (const auto& [address, bytes] : given) found.push_back({memory(address), bytes});
  return found;
}

CaptureMode capture_mode(const std::string& name) {
  return name == "global"         ? CaptureMode::kGlobal
         : name == "thread_local" ? CaptureMode::kThreadLocal
                                  : CaptureMode::kRelaxed;
}

void bind_fake(py::module_& m) {
  py::class_<FakeDevice, DeviceApi, std::shared_ptr<FakeDevice>>(m, "FakeDevice")
      .def(py::init([](int devices, double call, double copy, double copy_byte, double expand,
                       std::set<std::string> forgotten) {
             return std::make_shared<FakeDevice>(
                 FakeConfig{devices, call, copy, copy_byte, expand, std::move(forgotten)});
           }),
           py::kw_only(), py::arg("devices") = 1, py::arg("call_seconds") = 0.0,
           py::arg("copy_seconds") = 0.0, py::arg("copy_byte_seconds") = 0.0,
           py::arg("expand_seconds") = 0.0, py::arg("forgotten") = std::set<std::string>{})
      .def("select_device", &FakeDevice::select_device, py::arg("device"))
      .def("create_stream", [](FakeDevice& d) { return number(d.create_stream()); })
      .def("synchronize", [](FakeDevice& d, Handle s) { d.synchronize(handle(s)); })
      .def("create_event", [](FakeDevice& d) { return number(d.create_event(EventUse::kTime)); })
      .def("record", [](FakeDevice& d, Handle e, Handle s) { d.record(handle(e), handle(s)); })
      .def("wait", [](FakeDevice& d, Handle s, Handle e) { d.wait(handle(s), handle(e)); })
      .def("reached", [](FakeDevice& d, Handle e) { return d.reached(handle(e)); })
      .def("sleep_until", [](FakeDevice& d, Handle e) { d.sleep_until(handle(e)); })
      .def("seconds_between",
           [](FakeDevice& d, Handle first, Handle last) {
             return d.seconds_between(handle(first), handle(last));
           })
      .def("time_of", [](FakeDevice& d, Handle e) { return d.time_of(handle(e)); })
      .def("allocate_pinned",
           [](FakeDevice& d, std::size_t bytes) { return number(d.allocate_pinned(bytes)); })
      .def("free_pinned", [](FakeDevice& d, Handle address) { d.free_pinned(memory(address)); })
      .def("copy_to_device",
           [](FakeDevice& d, Handle to, Handle from, std::size_t bytes, Handle stream) {
             d.copy_to_device(memory(to), memory(from), bytes, handle(stream));
           })
      .def("host_writes", [](FakeDevice& d, Handle address,
                             std::size_t bytes) { d.host_writes(memory(address), bytes); })
      .def(
          "launch",
          [](FakeDevice& d, Handle stream, double seconds, const Ranges& reads,
             const Ranges& writes, const std::string& what) {
            d.launch(handle(stream), seconds, what, ranges(reads), ranges(writes), {});
          },
          py::arg("stream"), py::arg("seconds"), py::arg("reads") = Ranges{},
          py::arg("writes") = Ranges{}, py::arg("what") = "a kernel")
      .def("read",
           [](FakeDevice& d, Handle stream, Handle address, std::size_t bytes) {
             const auto found = d.read(handle(stream), {memory(address), bytes});
             return py::bytes(reinterpret_cast<const char*>(found.data()), found.size());
           })
      .def("allocate", [](FakeDevice& d, std::size_t bytes,
                          Handle stream) { return number(d.allocate(bytes, handle(stream))); })
      .def("record_stream", [](FakeDevice& d, Handle block,
                               Handle stream) { d.record_stream(memory(block), handle(stream)); })
      .def("free", [](FakeDevice& d, Handle block) { d.free(memory(block)); })
      .def("advance", &FakeDevice::advance, py::arg("seconds"))
      .def(
          "begin_capture",
          [](FakeDevice& d, Handle stream, const std::string& mode) {
            d.begin_capture(handle(stream), capture_mode(mode));
          },
          py::arg("stream"), py::arg("mode") = "global")
      .def("end_capture", [](FakeDevice& d, Handle stream) { d.end_capture(handle(stream)); })
      .def("go_back", &FakeDevice::go_back, py::arg("device"))
      .def_property_readonly("now", &FakeDevice::now)
      .def_property_readonly("selected_device", &FakeDevice::selected_device)
      .def_property_readonly("contexts", &FakeDevice::contexts)
      .def_property_readonly("pinned_bytes", &FakeDevice::pinned_bytes)
      .def("count", &FakeDevice::count, py::arg("call"))
      .def("fail", &FakeDevice::fail, py::arg("error"))
      .def_property_readonly("sleepers", &FakeDevice::sleepers)
      .def_property_readonly("faults", &FakeDevice::faults);
}

void bind_meter(py::module_& m) {
  py::class_<CopyEvents>(m, "CopyEvents")
      .def_readwrite("slot_asked", &CopyEvents::slot_asked)
      .def_readwrite("slot_granted", &CopyEvents::slot_granted);
  const py::class_<Entry> entry(m, "Entry");
  const py::class_<Course, std::shared_ptr<Course>> course(m, "Course");
  py::class_<StarvationCounts>(m, "StarvationCounts")
      .def_readonly("batches", &StarvationCounts::batches)
      .def_readonly("elapsed", &StarvationCounts::elapsed)
      .def_readonly("starved", &StarvationCounts::starved)
      .def_readonly("load", &StarvationCounts::load)
      .def_readonly("ring", &StarvationCounts::ring)
      .def_readonly("copy", &StarvationCounts::copy)
      .def_readonly("handoff", &StarvationCounts::handoff)
      .def_readonly("headroom", &StarvationCounts::headroom);
  py::class_<StarvationMeter, std::shared_ptr<StarvationMeter>>(m, "StarvationMeter")
      .def(py::init<DeviceApi&>(), py::arg("device"), py::keep_alive<1, 2>())
      .def("begin_course", &StarvationMeter::begin_course, py::keep_alive<0, 1>())
      .def("begin_copy",
           [](StarvationMeter& meter, Handle stream) { return meter.begin_copy(handle(stream)); })
      .def("end_copy", [](StarvationMeter& meter, CopyEvents& copy,
                          Handle stream) { meter.end_copy(copy, handle(stream)); })
      .def("enter",
           [](StarvationMeter& meter, Handle stream) { return meter.enter(handle(stream)); })
      .def("leave",
           [](StarvationMeter& meter, const Entry& entry, Handle stream, const CopyEvents& copy,
              const std::shared_ptr<Course>& course) {
             meter.leave(entry, handle(stream), copy, course);
           })
      .def("abandon", &StarvationMeter::abandon)
      .def("harvest", &StarvationMeter::harvest)
      .def_property_readonly("counts", &StarvationMeter::counts);
}

}  // namespace

void bind_fake_device(py::module_& m) {
  bind_fake(m);
  bind_meter(m);
}

}  // namespace brimful
