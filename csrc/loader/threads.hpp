// Starting a worker thread: it has a name, and signals go to the threads that asked for them.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace brimful {

// Runs `body` in a new thread that debuggers and `top -H` show as `name` (15 characters at most).
// Signals sent to the process are blocked there: they belong to the interpreter's threads. Faults
// of the thread's own (SIGBUS of a mapped file that shrank, SIGSEGV ...) are not, for the kernel
// kills a process that blocks them without asking its handlers.
std::jthread start_thread(std::string name, std::function<void()> body);

// Called first in a new thread: false where there is no memory for its thread-local variables, ours
// and those that exceptions need. The C library asks for it when one is used first, and ends the
// process where there is none; so nothing may be thrown then.
[[nodiscard]] bool reserve_thread_locals();

}  // namespace brimful
