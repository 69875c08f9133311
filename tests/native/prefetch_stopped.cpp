// A worker that gets no time: its thread is stopped while it waits for a slot, in a signal handler.
// next() then says that the batch is not begun, and goes on when the thread does.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.hpp"
#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;
using std::chrono::milliseconds;

constexpr std::int64_t kDepth = 3;
constexpr std::int64_t kBatches = 8;
constexpr std::size_t kWords = 64;
constexpr int kStop = SIGTRAP;  // one that workers do not block

std::atomic<bool> stopped{false};
std::atomic<bool> go_on{false};

void stop_here(int) {
  stopped = true;
  while (!go_on) usleep(1000);
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The thread of the only worker, once it sleeps.
pid_t sleeping_worker() {
  while (true) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (!first_line(task.path() / "comm").starts_with("brimful")) continue;
      const std::string stat = first_line(task.path() / "stat");
      if (stat.find(") S ") != std::string::npos) return std::stoi(task.path().filename());
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace

int main() {
  end_if_hung();
  struct sigaction action = {};
  action.sa_handler = stop_here;
  sigaction(kStop, &action, nullptr);

  auto producer = std::make_shared<NumberedProducer>(kBatches, kWords);
  Prefetcher prefetcher(producer, {.num_workers = 1, .depth = kDepth, .timeout = milliseconds(20)});
  while (producer->claimed() < kDepth) std::this_thread::yield();
  // Its last fill does not wait for anything, so it sleeps where it wants a slot.
  syscall(SYS_tgkill, getpid(), sleeping_worker(), kStop);
  while (!stopped) std::this_thread::yield();

  for (std::int64_t number = 0; number < kDepth; ++number) take(prefetcher, producer, number);
  const std::string late = "batch " + std::to_string(kDepth) + " ";
  for (int i = 0; i < 3; ++i) {
    const std::string message =
        message_of<LoaderTimeout>([&] { prefetcher.next(); }, "a batch that is not begun");
    check(message.starts_with(late), message);
    check(message.find("Late: waiting for a slot") != std::string::npos, message);
  }
  go_on = true;
  for (std::int64_t number = kDepth; number < kBatches;) {
    try {
      take(prefetcher, producer, number);
      ++number;
    } catch (const LoaderTimeout&) {
      // A busy machine: the stream goes on all the same.
    }
  }
}
