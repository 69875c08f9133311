#include "core/home.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace brimful {
namespace {

std::atomic<std::uint64_t> forks{0};  // between the first process and this one

void count_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  });
}

}  // namespace

Home::Home() : process_(getpid()) {
  count_forks();
  forks_ = forks.load(std::memory_order_relaxed);
}

bool Home::left() const { return forks.load(std::memory_order_relaxed) != forks_; }

}  // namespace brimful
