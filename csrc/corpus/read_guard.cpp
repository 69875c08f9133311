#include "corpus/read_guard.hpp"

#include <signal.h>

#include <mutex>

#include "core/error.hpp"

namespace brimful {
namespace {

thread_local ReadGuard* active_guard = nullptr;
thread_local void* fault_address = nullptr;  // of this thread's last failed read
struct sigaction previous_action;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (active_guard != nullptr) {
    fault_address = info->si_addr;
    siglongjmp(active_guard->jump, 1);
  }
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

// Throws where the last failed read was of a file of the store.
void fail_at_fault(const TokenStore& store) {
  for (const auto* file : {&store.file, &store.index_file, &store.loss_file}) {
    if (*file == nullptr) continue;
    if (const auto offset = (*file)->offset_of(fault_address)) (*file)->fail(*offset);
  }
}

// Of memory that somebody else has mapped.
[[noreturn]] void throw_unmapped(const std::string& name) {
  throw ReadError("reading " + name +
                  ": its file shrank or could not be read while it was open; found fewer bytes "
                  "than when it was opened. Restore the file, then open it again");
}

}  // namespace

ReadGuard::ReadGuard() : outer_(active_guard) {
  install_handler();
  active_guard = this;
}

ReadGuard::~ReadGuard() { active_guard = outer_; }

void throw_read_error(const TokenStore& store, std::int64_t at) {
  fail_at_fault(store);
  if (store.file != nullptr) store.file->fail(store.byte_of(at));
  throw_unmapped(store.name);
}

void throw_read_error(SharedFile& file) { file.fail(file.offset_of(fault_address).value_or(0)); }

void throw_read_error(const Source& source) {
  for (const TokenStore& store : source.stores) fail_at_fault(store);
  throw_unmapped("the index of source '" + source.name + "'");
}

}  // namespace brimful
