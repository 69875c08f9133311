#include "corpus/read_guard.hpp"

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "core/error.hpp"

namespace brimful {
namespace {

using Action = struct sigaction;

thread_local ReadGuard* active_guard = nullptr;
thread_local void* fault_address = nullptr;  // of this thread's last failed read
thread_local void* passed_on = nullptr;      // address of a fault that the action before was told

// Actions that were in place before ours, and the last one of them. No locks: a process may fork,
// and a signal come, at any moment.
constexpr std::size_t kMostActions = 64;  // after so many more an old one gives its place
std::array<Action, kMostActions> actions;
std::atomic<std::size_t> next_action{0};
std::atomic<const Action*> previous{nullptr};

void use_default(int signal) {
  Action action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (active_guard != nullptr) {
    fault_address = info->si_addr;
    siglongjmp(active_guard->jump, 1);
  }
  const Action* before = previous.load(std::memory_order_acquire);
  const bool has_function =
      before != nullptr && ((before->sa_flags & SA_SIGINFO) != 0 ||
                            (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN));
  // One that hands on to what it found, which may be ours, or raises the signal again, would go
  // round for ever.
  const bool goes_round =
      passed_on != nullptr && (info->si_code <= 0 || passed_on == info->si_addr);
  if (!has_function || goes_round) {
    use_default(signal);  // when the faulting instruction runs again
    return;
  }
  passed_on = info->si_addr;
  if ((before->sa_flags & SA_SIGINFO) != 0) {
    before->sa_sigaction(signal, info, context);
  } else {
    before->sa_handler(signal);
  }
  passed_on = nullptr;
}

// Others come later and put theirs in place of ours, or put back what they found before ours came
// (Lightning does, at the end of a fit): so it is looked at whenever a read begins.
void install_handler() {
  const auto is_ours = [](const Action& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
  };
  Action found = {};
  sigaction(SIGBUS, nullptr, &found);
  if (is_ours(found)) return;
  Action ours = {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, &found);
  if (is_ours(found)) return;  // another thread was faster
  Action& kept = actions[next_action.fetch_add(1, std::memory_order_relaxed) % kMostActions];
  kept = found;
  previous.store(&kept, std::memory_order_release);
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
  if (outer_ == nullptr) install_handler();
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
