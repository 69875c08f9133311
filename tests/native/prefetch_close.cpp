// Closing at any moment, from anywhere, more than once: threads are joined, whoever waits in next()
// is told, and the batches in the consumer's hands stay whole for as long as they are held.
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;
using std::chrono::microseconds;

constexpr std::size_t kWords = 64;
constexpr std::int64_t kEndless = std::int64_t{1} << 40;

void check_closed(Prefetcher& prefetcher) {
  const std::string message = message_of<Error>([&] { prefetcher.next(); }, "next() when closed");
  check(message.find("closed") != std::string::npos, message);
}

// The consumer takes some batches, keeps some, waits a while, and closes or just leaves.
void leave_at_random(int workers, unsigned seed) {
  std::mt19937 random(seed);
  auto producer = std::make_shared<NumberedProducer>(kEndless, kWords);
  std::vector<std::unique_ptr<Held>> kept;
  const std::int64_t depth = std::uniform_int_distribution<std::int64_t>(1, 8)(random);
  {
    Prefetcher prefetcher(producer, {.num_workers = workers, .depth = depth});
    const std::int64_t batches = std::uniform_int_distribution<std::int64_t>(0, 5)(random);
    for (std::int64_t number = 0; number < batches; ++number) {
      auto batch = take(prefetcher, producer, number);
      if (random() % 2 == 0) kept.push_back(std::move(batch));
    }
    std::this_thread::sleep_for(microseconds(random() % 200));
    if (random() % 2 == 0) {
      prefetcher.close();
      check_closed(prefetcher);
      prefetcher.close();
      check_closed(prefetcher);
    }
    const std::int64_t claimed = producer->claimed();
    check(workers > 0 || claimed == batches, "a batch is made although nobody asked");
  }
  const std::int64_t claimed = producer->claimed();
  for (const auto& batch : kept) batch->verify("after the prefetcher is gone");
  std::jthread elsewhere([kept = std::move(kept)]() mutable { kept.clear(); });
  check(producer->claimed() == claimed, "a worker lives on after the destructor");
}

// Two threads close while a third waits in next() for a batch that takes until then.
void close_while_next_waits(int workers) {
  std::atomic<bool> filling{false};
  std::atomic<bool> released{false};
  auto producer = std::make_shared<NumberedProducer>(kEndless, kWords, NumberedProducer::Hook{},
                                                     [&](std::int64_t number) {
                                                       if (number < 3) return;
                                                       filling = true;
                                                       while (!released) std::this_thread::yield();
                                                     });
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 2});
  for (std::int64_t number = 0; number < 3; ++number) take(prefetcher, producer, number);
  std::jthread consumer([&] { check_closed(prefetcher); });
  while (!filling) std::this_thread::yield();
  std::jthread first([&] { prefetcher.close(); });
  std::jthread second([&] { prefetcher.close(); });
  consumer.join();  // next() is told at once, the fill still going on
  released = true;
  first.join();
  second.join();
  check(producer->claimed() <= 3 + 2, "tickets are claimed after close()");
}

// Leases are dropped by other threads while the prefetcher closes and goes.
void drop_while_closing(int workers, unsigned seed) {
  auto producer = std::make_shared<NumberedProducer>(kEndless, kWords);
  std::vector<std::jthread> droppers;
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 4});
  for (std::int64_t number = 0; number < 8; ++number) {
    droppers.emplace_back([batch = take(prefetcher, producer, number), delay = seed]() mutable {
      std::this_thread::sleep_for(microseconds(delay % 100));
      batch.reset();
    });
  }
}

// Whoever came to the end is still there after close(), which an interrupt may repeat.
void close_at_the_end(int workers) {
  auto producer = std::make_shared<NumberedProducer>(5, kWords);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = 2});
  for (std::int64_t number = 0; number < 5; ++number) take(prefetcher, producer, number);
  expect_end(prefetcher);
  prefetcher.close();
  expect_end(prefetcher);
}

}  // namespace

int main() {
  end_if_hung();
  for (const int workers : {0, 1, 2, 16}) {
    close_at_the_end(workers);
    for (unsigned seed = 0; seed < 100; ++seed) {
      leave_at_random(workers, seed);
      if (seed % 5 == 0) drop_while_closing(workers, seed);
    }
  }
  for (const int workers : {1, 2, 16}) {
    for (int i = 0; i < 20; ++i) close_while_next_waits(workers);
  }
}
