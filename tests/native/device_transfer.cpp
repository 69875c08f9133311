// Batches on their way to a fake device, made by many threads: batch k holds k in every slot, slots
// are few and copies long, and the fake device finds no access that nothing orders. Leaves by the
// end of the stream and in its middle.
#include <cstring>
#include <deque>
#include <set>

#include "device/fake_device.hpp"
#include "loader/transfer.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;
using device::FakeConfig;
using device::FakeDevice;

constexpr std::int64_t kTokens = 192;
constexpr std::int64_t kBatches = 400;

Layout layout() {
  LayoutConfig config;
  config.fields = {Column::kInputIds, Column::kDocumentIds};
  config.seq_len = kTokens;
  return Layout(std::move(config));
}

Corpus corpus() {
  TokenStore store;
  store.type = TokenType::kU16;
  std::vector<Source> sources(1);
  sources[0].name = "numbers";
  sources[0].stores.push_back(std::move(store));
  return Corpus(std::move(sources));
}

// Parcels of one segment, each token the number of its batch.
class ParcelProducer : public Producer {
 public:
  ParcelProducer(std::shared_ptr<Courier> courier, std::int64_t count)
      : courier_(std::move(courier)), count_(count) {}

  std::size_t slot_bytes() const override { return courier_->layout().parcel_bytes(); }
  std::shared_ptr<SlotMemory> slot_memory() const override { return courier_->transfer().memory(); }
  bool sends() const override { return true; }
  void enter_thread() const override { courier_->enter_thread(); }
  void settle(bool waits) const override { courier_->settle(waits); }

  std::optional<BatchSpec> claim() override {
    if (next_ == count_) return std::nullopt;
    BatchSpec spec;
    spec.after.bin = next_++;
    return spec;
  }

  Filled fill(const BatchSpec& spec, const Lease& slot) const override {
    FilledParcel filled;
    filled.shape = {.segments = 1, .total = kTokens, .token_bytes = 2};
    filled.row = kTokens;
    courier_->transfer().api().host_writes(slot.get(), slot_bytes());
    const device::ParcelOffsets at = device::parcel_offsets(filled.shape);
    const auto write = [&](std::int64_t offset, auto value, std::int64_t index) {
      std::memcpy(slot.get() + offset + index * static_cast<std::int64_t>(sizeof value), &value,
                  sizeof value);
    };
    write(at.cu_seqlens, std::int32_t{0}, 0);
    write(at.cu_seqlens, static_cast<std::int32_t>(kTokens), 1);
    write(at.lengths, static_cast<std::int32_t>(kTokens), 0);
    write(at.document_ids, std::int32_t{0}, 0);
    for (std::int64_t i = 0; i < kTokens; ++i) {
      write(at.tokens, static_cast<std::uint16_t>(spec.after.bin), i);
    }
    return {{}, courier_->send(filled, slot)};
  }

 private:
  const std::shared_ptr<Courier> courier_;
  const std::int64_t count_;
  std::int64_t next_ = 0;
};

void check_batch(FakeDevice& fake, device::StreamHandle stream, const Courier& courier,
                 std::byte* block, std::int64_t number) {
  const auto found =
      fake.read(stream, {block + courier.layout().offset(0), kTokens * sizeof(std::int64_t)});
  for (std::int64_t i = 0; i < kTokens; ++i) {
    std::int64_t token = 0;
    std::memcpy(&token, found.data() + static_cast<std::size_t>(i) * sizeof token, sizeof token);
    check(token == number, "batch " + std::to_string(number) + " holds " + std::to_string(token));
  }
}

void run(int num_workers, std::int64_t depth, std::int64_t taken, std::size_t kept) {
  FakeConfig config;
  config.devices = 2;
  config.call_seconds = 1e-6;
  config.copy_seconds = 2e-5;
  config.expand_seconds = 1e-5;
  const auto fake = std::make_shared<FakeDevice>(config);
  {
    fake->select_device(1);
    const device::StreamHandle stream = fake->create_stream();
    const auto transfer = std::make_shared<Transfer>(fake, 1);
    const auto courier = std::make_shared<Courier>(transfer, DeviceLayout(layout(), corpus()));
    const auto course = transfer->meter().begin_course();
    const auto supply = [&] {
      courier->add_destination(
          fake->allocate(courier->layout().bytes(), transfer->copies().handle));
    };
    for (std::int64_t i = 0; i < (num_workers > 0 ? depth : 1); ++i) supply();
    Prefetcher prefetcher(std::make_shared<ParcelProducer>(courier, kBatches),
                          {.num_workers = num_workers, .depth = depth});
    std::deque<std::pair<std::byte*, std::int64_t>> held;
    for (std::int64_t k = 0; k < taken; ++k) {
      supply();
      const device::RelaxedCapture relaxed(*fake);
      const device::Entry entry = transfer->meter().enter(stream);
      auto batch = prefetcher.next();
      check(batch.has_value(), "the stream ends early");
      Sent& sent = *batch->sent;
      sent.taken = true;
      transfer->meter().leave(entry, stream, sent.events, course);
      fake->record_stream(sent.destination, stream);
      held.emplace_back(sent.destination, k);
      if (held.size() <= kept) continue;
      check_batch(*fake, stream, *courier, held.front().first, held.front().second);
      fake->free(held.front().first);
      held.pop_front();
    }
    if (taken == kBatches) check(!prefetcher.next(), "the stream goes on");
    prefetcher.close();
    for (const auto& [block, number] : held) check_batch(*fake, stream, *courier, block, number);
  }
  const std::vector<std::string> faults = fake->faults();
  check(faults.empty(), faults.empty() ? "" : faults[0]);
  check(fake->contexts() == std::set<int>{1}, "another device has a context");
  check(fake->pinned_bytes() == 0, "page-locked memory is left");
}

}  // namespace

int main() {
  end_if_hung();
  for (const int workers : {0, 1, 4}) {
    for (const std::int64_t depth : {1, 3}) {
      run(workers, depth, kBatches, 2);
      run(workers, depth, 7, 0);
      run(workers, depth, 0, 0);
    }
  }
}
