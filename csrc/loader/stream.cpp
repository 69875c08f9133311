#include "loader/stream.hpp"

#include <string>
#include <utility>

#include "batch/fill.hpp"
#include "core/error.hpp"
#include "loader/read_ahead.hpp"

namespace brimful {

// Makes batches from the plan. The dealer is used under the prefetcher's claims, one at a time.
class Stream::Maker : public Producer {
 public:
  Maker(std::shared_ptr<const Plan> plan, Layout layout, Geometry geometry, Cursor cursor,
        ReadConfig read, StepSet skip, std::int64_t steps_before, std::shared_ptr<Courier> courier)
      : layout_(std::move(layout)),
        read_(std::move(read)),
        dealer_(std::move(plan), geometry, cursor, std::move(skip), steps_before),
        epoch_(dealer_.epoch()),
        passed_steps_(dealer_.steps_before() - steps_before),
        courier_(std::move(courier)) {}

  std::size_t slot_bytes() const override {
    return courier_ ? courier_->layout().parcel_bytes() : layout_.slot_bytes();
  }
  std::shared_ptr<SlotMemory> slot_memory() const override {
    return courier_ ? courier_->transfer().memory() : nullptr;
  }
  bool sends() const override { return courier_ != nullptr; }
  void enter_thread() const override {
    if (courier_) courier_->enter_thread();
  }
  std::optional<BatchSpec> claim() override { return read_ahead_.next(); }
  bool at_hand() const override { return read_ahead_.at_hand(); }
  bool reads_storage() const override { return read_ahead_.reads_storage(); }
  void prepare() const override { dealer_.plan_ahead(); }
  Filled fill(const BatchSpec& spec, const Lease& slot) const override {
    const ReadAhead::Reads before = ReadAhead::filling();
    if (!courier_) {
      BatchMeta meta = brimful::fill(spec, layout_, read_, slot.get());
      read_ahead_.filled(before);
      return {std::move(meta)};
    }
    FilledParcel parcel = courier_->fill(spec, read_, slot);
    read_ahead_.filled(before);
    std::shared_ptr<Sent> sent = courier_->send(parcel, slot);
    return {std::move(parcel.meta), std::move(sent)};
  }
  void settle(bool waits) const override {
    if (courier_) courier_->settle(waits);
  }
  double now() const override { return courier_ ? courier_->transfer().api().now() : 0; }

  const Layout& layout() const { return layout_; }
  std::int64_t epoch() const { return epoch_; }
  std::int64_t passed_steps() const { return passed_steps_; }
  const Delta& end() const { return dealer_.end(); }
  std::int64_t steps() const { return dealer_.steps(); }

 private:
  Layout layout_;
  ReadConfig read_;
  Dealer dealer_;
  mutable ReadAhead read_ahead_{dealer_};
  std::int64_t epoch_;
  std::int64_t passed_steps_;
  std::shared_ptr<Courier> courier_;  // of a stream whose batches go to a device
};

Stream::Stream(std::shared_ptr<const Plan> plan, Layout layout, Geometry geometry, Cursor cursor,
               ReadConfig read, PrefetchConfig prefetch, std::shared_ptr<Ledger> ledger,
               StepSet skip, std::int64_t steps_before, std::shared_ptr<Courier> courier)
    : plan_(plan),
      maker_(std::make_shared<Maker>(std::move(plan), std::move(layout), geometry, cursor,
                                     std::move(read), std::move(skip), steps_before, courier)),
      ledger_(std::move(ledger)),
      run_(ledger_->run()),
      cursor_(cursor),
      supplied_(prefetch.memory == Ring::Memory::kSupplied),
      courier_(std::move(courier)),
      course_(courier_ ? courier_->transfer().meter().begin_course() : nullptr),
      prefetcher_(maker_, prefetch) {}

namespace {

BatchRecord record_of(const Delivered& batch, std::optional<std::int64_t> measured) {
  const BatchSpec& spec = batch.spec;
  return {.epoch = spec.epoch,
          .step = spec.step,
          .micro_batch = spec.micro_batch,
          .slots = spec.delta.rank.slots,
          .tokens = batch.meta.num_tokens,
          .effective_tokens = batch.meta.num_items,
          .attention_work = batch.meta.attention_work,
          .measured = measured,
          .times = batch.times};
}

}  // namespace

std::optional<Delivered> Stream::take(const std::function<void()>& on_idle,
                                      std::optional<std::int64_t> measured) {
  auto batch = prefetcher_.next(on_idle);
  if (!batch) plan_->corpus().check_open_files();
  const std::scoped_lock lock(cursor_mutex_);
  if (batch) {
    cursor_ = batch->spec.after;
    ledger_->add_batch(batch->spec, batch->meta, run_);
    ledger_->records().add(record_of(*batch, measured));
  } else if (!finished_) {
    finished_ = true;
    cursor_ = Cursor{.epoch = maker_->epoch() + 1};
    ledger_->add_end(maker_->end(), run_);
  }
  return batch;
}

std::optional<Delivered> Stream::next_on(device::StreamHandle compute,
                                         const std::function<void()>& on_idle) {
  prefetcher_.refuse_if_forked();  // before any call of the device, which has no context there
  Transfer& transfer = courier_->transfer();
  const device::RelaxedCapture relaxed(transfer.api());
  device::StarvationMeter& meter = transfer.meter();
  const device::Entry entry = meter.enter(compute);
  std::optional<Delivered> batch;
  try {
    batch = take(on_idle, entry.event == nullptr ? std::nullopt : std::optional(entry.number));
  } catch (...) {
    meter.abandon(entry);
    throw;
  }
  if (!batch) {
    meter.abandon(entry);
    meter.harvest();
    return batch;
  }
  Sent& sent = *batch->sent;
  sent.events.slot_asked = batch->times.slot_asked;
  sent.events.slot_granted = batch->times.slot_granted;
  sent.taken = true;
  meter.leave(entry, compute, sent.events, course_);
  batch->slot.reset();  // its copy has a lease of its own
  return batch;
}

void Stream::supply(std::span<std::byte> block) {
  if (block.size() < layout().slot_bytes()) {
    throw PlanError("a block of " + std::to_string(block.size()) + " bytes was supplied; a batch " +
                    "takes " + std::to_string(layout().slot_bytes()));
  }
  prefetcher_.supply(block.data());
}

const Layout& Stream::layout() const { return maker_->layout(); }

std::int64_t Stream::epoch() const { return maker_->epoch(); }

std::int64_t Stream::passed_steps() const { return maker_->passed_steps(); }

std::optional<std::int64_t> Stream::epoch_steps() const {
  const std::scoped_lock lock(cursor_mutex_);
  return finished_ ? std::optional(maker_->steps()) : std::nullopt;
}

Cursor Stream::cursor() const {
  const std::scoped_lock lock(cursor_mutex_);
  return cursor_;
}

std::pair<Cursor, Counts> Stream::standing() const {
  const std::scoped_lock lock(cursor_mutex_);
  return {cursor_, ledger_->counts()};
}

}  // namespace brimful
