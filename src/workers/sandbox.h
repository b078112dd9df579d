// Takes from this process what an engine that computes on the CPU does not need: after that, whoever makes it
// run foreign code can neither open a file or a connection nor start a program. Linux; a kernel may lack
// parts of it.
#pragma once
#include <string>
#include <vector>

namespace gimbal {

struct Sandbox {
  std::vector<std::string>
      in_force;  // "no new privileges", "no files (Landlock)", "45 system calls (seccomp)"
  std::vector<std::string> missing;  // with the reason: "Landlock: Function not implemented"
};

// For all threads of the process, and for good. Open descriptors stay usable: weights that are mapped, the
// socket to the front, the log. Drivers of GPUs open files and talk to devices whenever they like: a process
// that uses one must not call this.
Sandbox enter_sandbox();

}  // namespace gimbal
