// The waits of next(): a timeout says which stage is late and loses nothing; on_idle runs while
// next() is blocked, without a lock, and may throw, ask for the counters or close; times end up in
// the counter that is meant for them, and stalls are true.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;
using std::chrono::milliseconds;

constexpr std::size_t kWords = 64;
constexpr std::int64_t kBatches = 5;

// Holds up batch `number` until it is opened.
class Gate {
 public:
  explicit Gate(std::int64_t number) : number_(number) {}
  NumberedProducer::Hook hook() {
    return [this](std::int64_t number) {
      if (number != number_) return;
      reached_ = true;
      const auto begin = std::chrono::steady_clock::now();
      while (!open_) std::this_thread::sleep_for(milliseconds(1));
      const std::chrono::duration<double> held_up = std::chrono::steady_clock::now() - begin;
      seconds_ = held_up.count();
    };
  }
  // How long the batch was held up.
  double seconds() const { return seconds_; }
  void open() { open_ = true; }
  void wait_until_reached() const {
    while (!reached_) std::this_thread::yield();
  }

 private:
  const std::int64_t number_;
  std::atomic<bool> reached_{false};
  std::atomic<bool> open_{false};
  std::atomic<double> seconds_{0};
};

std::shared_ptr<NumberedProducer> gated_producer(Gate& gate, bool in_claim) {
  return in_claim ? std::make_shared<NumberedProducer>(kBatches, kWords, gate.hook())
                  : std::make_shared<NumberedProducer>(kBatches, kWords, NumberedProducer::Hook{},
                                                       gate.hook());
}

// On a busy machine any batch may be late: the stream must go on all the same.
std::optional<Delivered> patient_next(Prefetcher& prefetcher) {
  while (true) {
    try {
      return prefetcher.next();
    } catch (const LoaderTimeout&) {
    }
  }
}

void time_out(int workers, std::int64_t late, bool in_claim) {
  Gate gate(late);
  auto producer = gated_producer(gate, in_claim);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 2, .timeout = milliseconds(3)});
  for (std::int64_t number = 0; number <= kBatches; ++number) {
    if (number == late) {
      gate.wait_until_reached();
      for (int i = 0; i < 3; ++i) {
        const std::string message =
            message_of<LoaderTimeout>([&] { prefetcher.next(); }, "a batch that is late");
        const std::string stage = in_claim ? "planning" : "filling";
        check(message.find("Late: " + stage) != std::string::npos, message);
        check(message.starts_with("batch " + std::to_string(late) + " "), message);
      }
      gate.open();
    }
    std::optional<Delivered> batch = patient_next(prefetcher);
    check(batch.has_value() == (number < kBatches), "the stream ends at the wrong place");
    if (batch) Held(producer, std::move(*batch), number).verify("after a wait");
  }
}

void idle(int workers, bool in_claim) {
  Gate gate(1);
  auto producer = gated_producer(gate, in_claim);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 2});
  take(prefetcher, producer, 0);
  check(prefetcher.counters().first_batch_seconds > 0, "the first batch took no time");
  gate.wait_until_reached();

  message_of<std::runtime_error>(
      [&] { prefetcher.next([] { throw std::runtime_error("interrupted"); }); },
      "on_idle that throws");
  check(prefetcher.counters().stall_seconds > 0, "an interrupted wait is no stall");

  const std::string again = message_of<Error>([&] { prefetcher.next([&] { prefetcher.next(); }); },
                                              "next() inside next()");
  check(again.find("already being asked") != std::string::npos, again);

  int calls = 0;
  const double stall = prefetcher.counters().stall_seconds;
  std::optional<Delivered> batch = prefetcher.next([&] {
    check(prefetcher.counters().batches == 1, "the counters are wrong while next() waits");
    if (++calls == 2) gate.open();
  });
  check(batch.has_value(), "no batch after an interrupted wait");
  Held(producer, std::move(*batch), 1).verify("after a wait");
  check(calls >= 2, "on_idle is not called while next() is blocked");
  const PrefetchCounters counters = prefetcher.counters();
  check(counters.stall_seconds > stall, "a wait is no stall");
  double seconds = 0;
  for (const ThreadSeconds& thread : counters.threads) {
    seconds += in_claim ? thread.plan : thread.fill;
  }
  check(seconds >= gate.seconds(), "the time of a stage is not in its counter");
}

void close_when_idle() {
  Gate gate(0);
  auto producer = gated_producer(gate, /*in_claim=*/false);
  Prefetcher prefetcher(producer, {.num_workers = 1, .depth = 1});
  const auto close_it = [&] {
    gate.open();  // or the worker could not be joined
    prefetcher.close();
  };
  message_of<Error>([&] { prefetcher.next(close_it); }, "close() while next() is blocked");
}

// While the consumer takes its time, the worker waits for a slot: that is backpressure.
void press_back() {
  auto producer = std::make_shared<NumberedProducer>(kBatches, kWords);
  Prefetcher prefetcher(producer, {.num_workers = 1, .depth = 1});
  for (std::int64_t number = 0; number < kBatches; ++number) {
    std::this_thread::sleep_for(milliseconds(5));
    take(prefetcher, producer, number);
  }
  check(prefetcher.counters().threads.at(0).backpressure > 0,
        "no backpressure from a slow consumer");
}

// The stall of each batch is the time from the call until the batch was made, and never longer than
// the call. A busy machine may hold up this thread between looking at the clock and the call, so
// most batches must agree, not all.
void stall_is_true(int workers, milliseconds load, milliseconds step) {
  using Time = std::chrono::steady_clock::time_point;
  constexpr std::int64_t kCount = 21;
  std::vector<Time> made(kCount);
  auto producer = std::make_shared<NumberedProducer>(
      kCount, kWords, NumberedProducer::Hook{}, [&](auto number) {
        std::this_thread::sleep_for(load);
        made[static_cast<std::size_t>(number)] = std::chrono::steady_clock::now();
      });
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 2});
  std::vector<double> errors;
  double in_all = 0;
  for (std::int64_t number = 0; number < kCount; ++number) {
    const Time called = std::chrono::steady_clock::now();
    std::optional<Delivered> batch = prefetcher.next();
    const Time back = std::chrono::steady_clock::now();
    check(batch.has_value(), "the stream ends early");
    const double stall = batch->times.stall;
    in_all += stall;
    if (number == 0) check(stall == 0, "the wait for the first batch is a stall");
    check(stall <= to_seconds(back - called), "a stall is longer than its call");
    const double true_stall = to_seconds(made[static_cast<std::size_t>(number)] - called);
    if (number > 0) errors.push_back(std::max(0.0, true_stall) - stall);
    Held(producer, std::move(*batch), number).verify("after a wait");
    std::this_thread::sleep_for(step);
  }
  std::nth_element(errors.begin(), errors.begin() + kCount / 2, errors.end());
  check(errors[kCount / 2] < 0.005, "stalls are shorter than the waits");
  const PrefetchCounters counters = prefetcher.counters();
  check(std::abs(in_all - counters.stall_seconds) < 1e-6, "stalls do not add up");
  check(counters.first_batch_seconds >= to_seconds(load), "the first batch came too early");
}

}  // namespace

int main() {
  end_if_hung();
  for (const int workers : {1, 2, 16}) {
    for (const bool in_claim : {false, true}) {
      for (std::int64_t late = 0; late < kBatches; ++late) time_out(workers, late, in_claim);
      idle(workers, in_claim);
    }
  }
  close_when_idle();
  press_back();
  for (const int workers : {0, 1, 2}) {
    stall_is_true(workers, /*load=*/milliseconds(6), /*step=*/milliseconds(0));
    stall_is_true(workers, /*load=*/milliseconds(2), /*step=*/milliseconds(8));
    stall_is_true(workers, /*load=*/milliseconds(6), /*step=*/milliseconds(2));
  }
}
