// Worker threads as the rest of the process sees them: they have names, leave signals to others but
// not their own faults, and are gone after close().
#include <dirent.h>
#include <signal.h>

#include <fstream>
#include <thread>
#include <vector>

#include "numbered.hpp"

namespace {

using namespace brimful;
using namespace brimful::test;

struct ThreadStatus {
  std::string name;
  std::uint64_t blocked_signals;  // bit s-1 is signal s
};

// The threads of this process whose names begin with "brimful-".
std::vector<ThreadStatus> workers_alive() {
  std::vector<ThreadStatus> found;
  DIR* tasks = opendir("/proc/self/task");
  check(tasks != nullptr, "/proc/self/task cannot be read");
  while (const dirent* task = readdir(tasks)) {
    std::ifstream status(std::string("/proc/self/task/") + task->d_name + "/status");
    ThreadStatus thread;
    for (std::string key; status >> key;) {
      if (key == "Name:") status >> thread.name;
      if (key == "SigBlk:") status >> std::hex >> thread.blocked_signals;
    }
    if (thread.name.starts_with("brimful-")) found.push_back(thread);
  }
  closedir(tasks);
  return found;
}

bool blocks(const ThreadStatus& thread, int signal) {
  return (thread.blocked_signals >> (signal - 1) & 1) != 0;
}

}  // namespace

int main() {
  end_if_hung();
  constexpr int kWorkers = 12;
  auto producer = std::make_shared<NumberedProducer>(1 << 20, 64);
  Prefetcher prefetcher(producer, {.num_workers = kWorkers, .depth = 2});
  // A thread gives itself its name when it begins to run.
  while (workers_alive().size() < kWorkers) std::this_thread::yield();
  std::vector<bool> seen(kWorkers);
  for (const ThreadStatus& thread : workers_alive()) {
    seen.at(std::stoul(thread.name.substr(8))) = true;
    for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF}) {
      check(blocks(thread, signal), thread.name + " takes signal " + std::to_string(signal));
    }
    for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) {
      check(!blocks(thread, signal),
            thread.name + " blocks its own fault " + std::to_string(signal));
    }
  }
  for (const bool name : seen) check(name, "a worker's number is missing");
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  check(sigismember(&mask, SIGINT) == 0, "starting workers blocks the caller's signals");
  take(prefetcher, producer, 0);
  prefetcher.close();
  check(workers_alive().empty(), "a worker lives on after close()");
}
