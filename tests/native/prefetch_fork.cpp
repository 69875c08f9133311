// A process forks while workers run and leases are dropped. In the child the old iterator refuses,
// lets go of its batches and is destroyed without waiting for anyone; a new one works. The parent
// notices nothing. Under a sanitizer the child ends at once and only the parent is watched: what
// another thread locked in the sanitizer's allocator as the process forked stays locked in the
// child, which then waits for ever at times.
#include <sys/wait.h>

#include <thread>
#include <vector>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

constexpr std::size_t kWords = 64;
constexpr std::int64_t kEndless = std::int64_t{1} << 40;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kChildMayAllocate = false;
#else
constexpr bool kChildMayAllocate = true;
#endif

void live_in_the_child(std::unique_ptr<Prefetcher> opened_before, Lease inherited) {
  const std::string message =
      message_of<Error>([&] { opened_before->next(); }, "next() in a forked child");
  check(message.find("before fork") != std::string::npos, message);
  check(opened_before->counters().batches == 5, "the counters do not stand still");
  inherited.reset();
  opened_before->close();
  opened_before.reset();

  auto producer = std::make_shared<NumberedProducer>(kEndless, kWords);
  Prefetcher own(producer, {.num_workers = 2, .depth = 2});
  for (std::int64_t number = 0; number < 10; ++number) take(own, producer, number);
}

void fork_once(int workers) {
  auto producer = std::make_shared<NumberedProducer>(kEndless, kWords);
  auto prefetcher =
      std::make_unique<Prefetcher>(producer, PrefetchConfig{.num_workers = workers, .depth = 4});
  Lease lease = prefetcher->next()->slot;
  std::int64_t number = 1;
  while (number < 5) take(*prefetcher, producer, number++);

  const pid_t child = fork();
  check(child >= 0, "fork() fails");
  if (child == 0) {
    if (!kChildMayAllocate) std::_Exit(0);
    end_if_hung();  // alarms are not inherited
    live_in_the_child(std::move(prefetcher), std::move(lease));
    std::_Exit(0);
  }
  while (number < 20) take(*prefetcher, producer, number++);
  check(producer->holds(lease.get(), 0), "the child's end changes the parent's batch");
  producer->poison(lease.get());
  lease.reset();
  while (number < 30) take(*prefetcher, producer, number++);
  int status = 0;
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
        "the child ends with status " + std::to_string(status));
}

}  // namespace

int main() {
  end_if_hung();
  for (const int workers : {0, 1, 4}) {
    for (int i = 0; i < 15; ++i) fork_once(workers);
  }
}
