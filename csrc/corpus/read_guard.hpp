// Reads of mapped files that may shrink under us: a SIGBUS inside the guard becomes a ReadError
// that names the file, instead of the end of the process. Any thread; the previous handler still
// gets every SIGBUS that is not ours.
#pragma once

#include <csetjmp>
#include <string>

#include "corpus/corpus.hpp"

namespace brimful {

// Where this thread returns to when a read fails; null outside a guard.
class ReadGuard {
 public:
  ReadGuard();
  ~ReadGuard();
  ReadGuard(const ReadGuard&) = delete;
  ReadGuard& operator=(const ReadGuard&) = delete;
  sigjmp_buf jump;

 private:
  ReadGuard* outer_;
};

// After a guarded read of a store failed: the error of the file that the read was of, as
// SharedFile::fail(). Where the address tells nothing, `at` is the token that was read.
[[noreturn]] void throw_read_error(const TokenStore& store, std::int64_t at = 0);

// The same for one file.
[[noreturn]] void throw_read_error(SharedFile& file);

// The same for the index of a source, or the row map that it may have.
[[noreturn]] void throw_read_error(const Source& source);

// Calls body(); false when a read inside it failed. The body must not own anything: a failed read
// jumps out of it without destructors, and what it wrote to plain variables may be lost. Not
// inlined, so that the caller's own variables are safe from the jump.
template <class Body>
[[gnu::noinline]] bool read_guarded(const Body& body) {
  ReadGuard guard;
  if (sigsetjmp(guard.jump, 1) != 0) return false;
  body();
  return true;
}

}  // namespace brimful
