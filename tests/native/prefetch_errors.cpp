// What claim() or fill() throws, of any type, reaches next() in its ticket's place: every batch
// before it is delivered, and the same exception comes at each later call.
#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

constexpr std::int64_t kBatches = 12;
constexpr std::size_t kWords = 64;

struct NoStdException {
  std::int64_t number;
};

void throw_at(std::int64_t position, std::int64_t number, bool std_exception) {
  if (number != position) return;
  if (std_exception) throw ReadError("batch " + std::to_string(number) + " cannot be read");
  throw NoStdException{number};
}

// Which batch next() says has failed.
std::int64_t failed_batch(Prefetcher& prefetcher) {
  try {
    prefetcher.next();
  } catch (const ReadError& error) {
    return std::stoll(std::string(error.what()).substr(6));
  } catch (const NoStdException& error) {
    return error.number;
  }
  check(false, "next() goes on after an exception");
  return -1;
}

void expect_failure(Prefetcher& prefetcher, const std::shared_ptr<NumberedProducer>& producer,
                    std::int64_t position) {
  for (std::int64_t number = 0; number < position; ++number) take(prefetcher, producer, number);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t failed = failed_batch(prefetcher);
    check(failed == position, "batch " + std::to_string(position) + " throws, but next() blames " +
                                  std::to_string(failed));
  }
  prefetcher.close();
}

void fail_once(int workers, std::int64_t depth, std::int64_t position, bool in_claim,
               bool std_exception) {
  const auto failing = [=](std::int64_t number) { throw_at(position, number, std_exception); };
  auto producer = in_claim ? std::make_shared<NumberedProducer>(kBatches, kWords, failing)
                           : std::make_shared<NumberedProducer>(kBatches, kWords,
                                                                NumberedProducer::Hook{}, failing);
  Prefetcher prefetcher(producer, {.num_workers = workers, .depth = depth});
  expect_failure(prefetcher, producer, position);
}

// A later ticket fails first; the earlier one fails while the consumer waits for it, and counts.
void fail_twice() {
  std::atomic<bool> later_failed{false};
  auto producer = std::make_shared<NumberedProducer>(kBatches, kWords, NumberedProducer::Hook{},
                                                     [&](std::int64_t number) {
                                                       if (number == 2) {
                                                         while (!later_failed)
                                                           std::this_thread::yield();
                                                       }
                                                       if (number == 3) later_failed = true;
                                                       throw_at(number == 2 ? 2 : 3, number, true);
                                                     });
  Prefetcher prefetcher(producer, {.num_workers = 4, .depth = 4});
  expect_failure(prefetcher, producer, 2);
}

// The stream has ended for the workers while an earlier ticket is still being filled, and fails.
void fail_after_the_end_is_known() {
  std::atomic<bool> end_known{false};
  auto producer = std::make_shared<NumberedProducer>(
      3, kWords, [&](std::int64_t number) { end_known = number == 3; },
      [&](std::int64_t number) {
        if (number == 1) {
          while (!end_known) std::this_thread::yield();
        }
        throw_at(1, number, false);
      });
  Prefetcher prefetcher(producer, {.num_workers = 4, .depth = 4});
  expect_failure(prefetcher, producer, 1);
}

}  // namespace

int main() {
  end_if_hung();
  for (const int workers : {0, 1, 2, 16}) {
    for (const std::int64_t depth : {1, 3}) {
      for (std::int64_t position = 0; position < kBatches; ++position) {
        for (const bool in_claim : {false, true}) {
          for (const bool std_exception : {false, true}) {
            fail_once(workers, depth, position, in_claim, std_exception);
          }
        }
      }
      fail_once(workers, depth, kBatches, /*in_claim=*/true, true);  // instead of the end
    }
  }
  for (int i = 0; i < 50; ++i) {
    fail_twice();
    fail_after_the_end_is_known();
  }
}
