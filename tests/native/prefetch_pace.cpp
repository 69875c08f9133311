// At a brisk pace the consumer makes batches beside the workers, and workers without a core rest:
// the stream stays what it is, also where batches are held, fills throw or the stream is closed;
// and where batches take long, the others work again. Not where there is a timeout, or a device.
#include <sched.h>

#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "loader/pace.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

constexpr std::int64_t kConsumer = -1;

// Every batch can be claimed at once.
class BriskProducer : public NumberedProducer {
 public:
  using NumberedProducer::NumberedProducer;
  bool at_hand() const override { return !stops_at_hand_; }
  bool reads_storage() const override { return reads_; }
  bool sends() const override { return sends_; }
  std::atomic<bool> stops_at_hand_{false};
  std::atomic<bool> reads_{false};
  bool sends_ = false;
};

// Takes batches until one that `made_by` is true of, and gives its number; -1 at the end.
template <class F>
std::int64_t number_of_first(Prefetcher& prefetcher, const NumberedProducer& producer,
                             F&& made_by) {
  while (auto batch = prefetcher.next()) {
    const std::int64_t number = batch->spec.after.bin;
    const bool found = made_by(batch->times.thread);
    producer.poison(batch->slot.get());
    if (found) return number;
  }
  return -1;
}

void stream_is_what_it_is(int workers, std::int64_t depth, unsigned seed) {
  constexpr std::int64_t kBatches = 3000;
  auto producer = std::make_shared<BriskProducer>(kBatches, 64);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = depth});
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Held>> held;
  for (std::int64_t number = 0; number < kBatches; ++number) {
    held.push_back(take(prefetcher, producer, number));
    while (held.size() > random() % 5) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
    }
  }
  expect_end(prefetcher);
  check(producer->claimed() == kBatches, "batches were made that nobody got");
}

void errors_keep_their_place(int workers, std::int64_t wrong) {
  auto producer = std::make_shared<BriskProducer>(4000, 8, NumberedProducer::Hook{},
                                                  [wrong](std::int64_t number) {
                                                    if (number == wrong)
                                                      throw std::runtime_error("no luck with it");
                                                  });
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 4});
  for (std::int64_t number = 0; number < wrong; ++number) take(prefetcher, producer, number);
  for (int i = 0; i < 2; ++i) {
    const std::string message =
        message_of<std::runtime_error>([&] { prefetcher.next(); }, "a fill that throws");
    check(message == "no luck with it", "another error came: " + message);
  }
}

void closing_ends_it(int workers, unsigned seed) {
  auto producer = std::make_shared<BriskProducer>(1 << 30, 64);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 3});
  std::mt19937 random(seed);
  const std::int64_t stop = static_cast<std::int64_t>(500 + random() % 500);
  std::atomic<std::int64_t> taken{0};
  std::jthread closer([&] {
    while (taken < stop) std::this_thread::yield();
    prefetcher.close();
  });
  const std::string message = message_of<Error>(
      [&] {
        while (true) {
          const auto batch = prefetcher.next();
          producer->poison(batch->slot.get());
          ++taken;
        }
      },
      "a closed stream");
  check(message.find("closed") != std::string::npos, "another error came: " + message);
}

// The first batches are made by workers alone, as the pace is not known.
void consumer_takes_part() {
  auto producer = std::make_shared<BriskProducer>(1 << 30, 64);
  Prefetcher prefetcher(producer, {.num_workers = 2, .depth = 4});
  const std::int64_t first = number_of_first(
      prefetcher, *producer, [](std::int64_t thread) { return thread == kConsumer; });
  check(first > 0, "the consumer made the first batch");
  const PrefetchCounters counters = prefetcher.counters();
  check(counters.threads.size() == 3, "there are not the times of two workers and the consumer");
  check(counters.threads.back().fill > 0, "what the consumer fills is not counted");
}

// Where claim() may take long it is left to the workers.
void consumer_stays_out(const char* where, PrefetchConfig config, bool at_hand, bool sends,
                        bool reads) {
  auto producer = std::make_shared<BriskProducer>(5000, 64);
  producer->stops_at_hand_ = !at_hand;
  producer->sends_ = sends;
  producer->reads_ = reads;
  Prefetcher prefetcher(producer, config);
  const std::int64_t first = number_of_first(
      prefetcher, *producer, [](std::int64_t thread) { return thread == kConsumer; });
  check(first == -1, std::string("the consumer made a batch ") + where);
}

// While it lives this thread, and each that it starts, has one core alone.
class OneCore {
 public:
  OneCore() {
    check(sched_getaffinity(0, sizeof all_, &all_) == 0, "the cores of this process are not known");
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all_)) CPU_SET(core, &one);
    }
    check(sched_setaffinity(0, sizeof one, &one) == 0, "one core cannot be had");
  }
  ~OneCore() { sched_setaffinity(0, sizeof all_, &all_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t all_;
};

// On one core one worker is left to work, and all are back as soon as batches take long.
void workers_rest_and_come_back() {
  const OneCore one_core;
  std::atomic<bool> slow{false};
  auto producer =
      std::make_shared<BriskProducer>(1 << 30, 64, NumberedProducer::Hook{}, [&slow](std::int64_t) {
        if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      });
  Prefetcher prefetcher(producer, {.num_workers = 3, .depth = 4});
  int in_a_row = 0;  // that no worker of the two last ones made
  number_of_first(prefetcher, *producer, [&in_a_row](std::int64_t thread) {
    in_a_row = thread < 1 ? in_a_row + 1 : 0;
    return in_a_row == 2000;
  });
  slow = true;
  std::set<std::int64_t> makers;
  number_of_first(prefetcher, *producer, [&makers](std::int64_t thread) {
    makers.insert(thread);
    return makers.contains(0) && makers.contains(1) && makers.contains(2);
  });
}

// Where the consumer can never help, workers do not rest for long, on one core either.
void workers_do_not_rest_in_vain() {
  const OneCore one_core;
  auto producer = std::make_shared<BriskProducer>(20000, 64);
  producer->stops_at_hand_ = true;
  Prefetcher prefetcher(producer, {.num_workers = 3, .depth = 4});
  std::int64_t others = 0;
  number_of_first(prefetcher, *producer, [&others](std::int64_t thread) {
    others += thread > 0 ? 1 : 0;
    return false;
  });
  check(others > 2000, "of 20,000 batches the other workers made " + std::to_string(others));
}

void pace_is_a_mean_with_two_ends() {
  Pace pace;
  check(!pace.brisk(), "it is brisk before it is known");
  const auto batches_until = [&pace](bool brisk, double seconds, bool reads) {
    int batches = 0;
    while (pace.brisk() != brisk && batches < 1000) {
      pace.made(seconds, reads);
      ++batches;
    }
    return batches;
  };
  check(batches_until(true, 230e-6, false) == 1000, "230 us a batch begin it");
  const int calm = batches_until(true, 20e-6, false);
  check(calm > 1 && calm < 200, "20 us a batch begin it after " + std::to_string(calm));
  check(batches_until(false, 230e-6, false) == 1000, "230 us a batch end it");
  check(batches_until(false, 20e-6, true) == 1, "reading of storage does not end it");
  check(batches_until(true, 20e-6, true) == 1000, "it begins while storage is read");
  check(batches_until(true, 20e-6, false) == 1, "it does not begin when that has ended");
  const int late = batches_until(false, 2e-3, false);
  check(late > 1 && late < 100, "2 ms a batch end it after " + std::to_string(late));
  batches_until(true, 20e-6, false);
  pace.forget();
  check(!pace.brisk(), "it is brisk though it was forgotten");
  check(batches_until(true, 20e-6, false) > calm, "a forgotten one is known at once");
  pace.close();
  check(!pace.brisk(), "it is brisk once closed");
  check(batches_until(true, 20e-6, false) == 1000, "it begins again once closed");
}

}  // namespace

int main() {
  end_if_hung();
  pace_is_a_mean_with_two_ends();
  unsigned seed = 0;
  for (const int workers : {1, 2, 5, 16}) {
    for (const std::int64_t depth : {1, 2, 8}) stream_is_what_it_is(workers, depth, ++seed);
    for (const std::int64_t wrong : {0, 300, 1999}) errors_keep_their_place(workers, wrong);
    for (int i = 0; i < 3; ++i) closing_ends_it(workers, ++seed);
  }
  consumer_takes_part();
  const PrefetchConfig usual{.num_workers = 2, .depth = 4};
  PrefetchConfig timed = usual;
  timed.timeout = std::chrono::seconds(60);
  consumer_stays_out("where there is a timeout", timed, true, false, false);
  consumer_stays_out("whose claim may take long", usual, false, false, false);
  consumer_stays_out("that goes to a device", usual, true, true, false);
  consumer_stays_out("while storage is read", usual, true, false, true);
  workers_rest_and_come_back();
  workers_do_not_rest_in_vain();
}
