// Coverage of probe children: a child ends with _exit(), so it must write its counters before.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

// Part of the program only where scripts/check/coverage.py measures.
extern "C" void __gcov_dump(void) __attribute__((weak));

namespace gimbal::test {

inline bool coverage_measured() { return __gcov_dump != nullptr; }

// A process of its own writes the counters. The parent of a probe child may kill it once its answer has come,
// with its process group; a counter file that is cut off there counts nothing from then on.
inline void write_coverage() {
  if (!coverage_measured()) return;
  const pid_t writer = fork();
  if (writer == 0) {
    setsid();
    __gcov_dump();
    _exit(0);
  }
  if (writer > 0) waitpid(writer, nullptr, 0);
}

}  // namespace gimbal::test
