#include "loader/threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <utility>

namespace brimful {

namespace {

// A new thread inherits the mask of the one that starts it, so the mask is set around the start: a
// signal cannot slip in before the thread has blocked it.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// More than all of them take together.
constexpr std::size_t kThreadLocals = std::size_t{64} << 10;

thread_local volatile bool thread_locals_are_there = false;

}  // namespace

bool reserve_thread_locals() {
  void* volatile room = std::malloc(kThreadLocals);  // volatile, or nothing would be asked for
  if (room == nullptr) return false;
  std::free(room);
  thread_locals_are_there = std::uncaught_exceptions() == 0;  // uses a variable of either kind
  return true;
}

std::jthread start_thread(std::string name, std::function<void()> body) {
  const BlockedSignals blocked;
  return std::jthread([name = std::move(name), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
}

}  // namespace brimful
