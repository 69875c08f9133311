// The process that an object was made in. Threads do not survive a fork, and locks may be held by
// threads that are not there, so what has either asks first whether it is still at home. A counter
// of forks tells, for next to nothing, where getpid() would be a system call each time.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace brimful {

class Home {
 public:
  Home();
  // Whether this is a forked child of the process that the object was made in.
  bool left() const;
  pid_t process() const { return process_; }

 private:
  std::uint64_t forks_;
  pid_t process_;
};

}  // namespace brimful
