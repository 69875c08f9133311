// For every number of workers and depth the stream is the same, whatever the consumer does with its
// batches; workers never run further ahead than `depth`; the ring grows when, and only when, the
// consumer keeps every slot.
#include <array>
#include <condition_variable>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

constexpr std::int64_t kBatches = 60;
constexpr std::size_t kWords = 131;  // no whole number of cache lines

// Drops what it is given, in a thread of its own.
class Dropper {
 public:
  ~Dropper() { give(nullptr); }
  void give(std::unique_ptr<Held> batch) {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    given_.notify_one();
  }

 private:
  void run() {
    while (true) {
      std::unique_ptr<Held> batch;
      std::unique_lock lock(mutex_);
      given_.wait(lock, [&] { return !batches_.empty(); });
      batch = std::move(batches_.front());
      batches_.pop_front();
      lock.unlock();
      if (!batch) return;
    }
  }

  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<std::unique_ptr<Held>> batches_;
  std::jthread thread_{[this] { run(); }};
};

enum class Keeps { kNone, kOne, kSome, kElsewhere, kAll };

void run_consumer(int workers, std::int64_t depth, Keeps keeps) {
  std::atomic<std::int64_t> seen{0};
  const std::int64_t ahead = workers == 0 ? 1 : depth;
  auto producer = std::make_shared<NumberedProducer>(kBatches, kWords, [&](std::int64_t number) {
    // The batch that next() has handed over but not yet returned is not in `seen`.
    check(number <= seen + ahead, "a ticket is claimed further ahead than depth");
  });
  std::vector<std::unique_ptr<Held>> kept;
  {
    Prefetcher prefetcher(producer, {.num_workers = workers, .depth = depth});
    Dropper dropper;
    std::mt19937 random(static_cast<unsigned>(depth));
    std::unique_ptr<Held> last;
    for (std::int64_t number = 0; number < kBatches; ++number) {
      std::unique_ptr<Held> batch = take(prefetcher, producer, number);
      ++seen;
      if (keeps == Keeps::kOne) last = std::move(batch);
      if (keeps == Keeps::kElsewhere) dropper.give(std::move(batch));
      if (keeps == Keeps::kSome || keeps == Keeps::kAll) kept.push_back(std::move(batch));
      if (keeps == Keeps::kSome && random() % 2 == 0) {
        const std::size_t victim = random() % kept.size();
        std::swap(kept[victim], kept.back());
        kept.pop_back();
      }
    }
    expect_end(prefetcher);
    const PrefetchCounters counters = prefetcher.counters();
    check(counters.batches == kBatches, "the counter of batches is wrong");
    check(counters.slots == ahead + 1 + counters.slots_grown, "the counter of slots is wrong");
    if (keeps == Keeps::kNone || keeps == Keeps::kOne) {
      check(counters.slots_grown == 0, "the ring grows although the consumer keeps one batch only");
    }
    if (keeps == Keeps::kAll) {
      check(counters.slots == kBatches + 1,  // the end, too, is found with a slot in hand

            "slots = " + std::to_string(counters.slots) + " for a consumer that keeps every batch");
    }
  }
  for (const auto& batch : kept) batch->verify("after the prefetcher is gone");
}

void run_into_max_slots(int workers, std::int64_t depth, std::int64_t max_slots) {
  auto producer = std::make_shared<NumberedProducer>(kBatches, kWords);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = depth, .max_slots = max_slots});
  std::deque<std::unique_ptr<Held>> kept;
  std::int64_t number = 0;
  while (number < max_slots) kept.push_back(take(prefetcher, producer, number++));
  for (int i = 0; i < 2; ++i) {
    const std::string message = message_of<RingExhausted>([&] { prefetcher.next(); }, "max_slots");
    check(message.find("max_slots = " + std::to_string(max_slots)) != std::string::npos, message);
  }
  while (number < kBatches) {
    kept.pop_front();
    kept.push_back(take(prefetcher, producer, number++));
  }
  kept.clear();
  expect_end(prefetcher);
  check(prefetcher.counters().slots == max_slots, "the ring has more than max_slots slots");
}

// Slots of several huge pages are mapped, not allocated.
void run_large_slots() {
  auto producer = std::make_shared<NumberedProducer>(8, std::size_t{600} << 10);
  std::vector<std::unique_ptr<Held>> kept;
  {
    Prefetcher prefetcher(producer, {.num_workers = 2, .depth = 1});
    for (std::int64_t number = 0; number < 8; ++number) {
      kept.push_back(take(prefetcher, producer, number));
      if (number % 2 == 1) kept.erase(kept.begin());
    }
    expect_end(prefetcher);
  }
  for (const auto& batch : kept) batch->verify("after the prefetcher is gone");
}

void refuse_bad_configurations() {
  const std::array<PrefetchConfig, 6> configs{{{.num_workers = -1},
                                               {.num_workers = 1 << 20},
                                               {.depth = 0},
                                               {.depth = std::int64_t{1} << 40},
                                               {.max_slots = 0},
                                               {.timeout = std::chrono::nanoseconds(-1)}}};
  for (const PrefetchConfig& config : configs) {
    auto producer = std::make_shared<NumberedProducer>(1, kWords);
    message_of<PlanError>([&] { Prefetcher(producer, config); }, "a configuration out of range");
    check(producer->claimed() == 0, "a refused configuration claims a ticket");
  }
}

}  // namespace

int main() {
  end_if_hung();
  for (const int workers : {0, 1, 2, 16}) {
    for (std::int64_t depth = 1; depth <= 8; ++depth) {
      for (const Keeps keeps :
           {Keeps::kNone, Keeps::kOne, Keeps::kSome, Keeps::kElsewhere, Keeps::kAll}) {
        run_consumer(workers, depth, keeps);
      }
      for (const std::int64_t max_slots : {1, 2, 5, 20}) {
        run_into_max_slots(workers, depth, max_slots);
      }
    }
  }
  run_large_slots();
  refuse_bad_configurations();
}
