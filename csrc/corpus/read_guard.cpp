#include "corpus/read_guard.hpp"

#include <signal.h>

#include <mutex>

#include "core/error.hpp"

namespace brimful {
namespace {

thread_local ReadGuard* active_guard = nullptr;
struct sigaction previous_action;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (active_guard != nullptr) siglongjmp(active_guard->jump, 1);
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
    return;
  }
  // Nobody else wants it: the default action, when the faulting instruction runs again.
  sigaction(signal, &previous_action, nullptr);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

}  // namespace

ReadGuard::ReadGuard() : outer_(active_guard) {
  install_handler();
  active_guard = this;
}

ReadGuard::~ReadGuard() { active_guard = outer_; }

void throw_read_error(const std::string& file) {
  throw ReadError(
      "reading " + file +
      ": the file shrank or could not be read while it was open; found fewer bytes than "
      "when it was opened. Restore the file, then open it again");
}

}  // namespace brimful
