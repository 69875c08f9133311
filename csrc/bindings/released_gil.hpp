// Letting other Python threads run while this one does without Python.
//
// The interpreter may end meanwhile. Until Python 3.14 it then ends a thread that wants its lock
// back by pthread_exit, which unwinds the stack; out of a destructor that would abort the process.
// Here such a thread, which can only be a daemon thread, stops where it is, as it does from 3.14
// on.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace brimful {

class ReleasedGil {
 public:
  ReleasedGil() : thread_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (...) {  // the unwinding: nothing else comes out of it
      while (true) pause();
    }
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const thread_;
};

}  // namespace brimful
