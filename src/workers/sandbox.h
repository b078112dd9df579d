// Removes from this process the rights that an engine on the CPU does not need. After that, foreign code in
// the process can neither open files or connections nor start programs. Linux; a kernel may lack parts of
// it.
#pragma once
#include <string>
#include <vector>

namespace gimbal {

struct Sandbox {
  std::vector<std::string>
      in_force;  // "no new privileges", "no files (Landlock)", "45 system calls (seccomp)"
  std::vector<std::string> missing;  // with the reason: "Landlock: Function not implemented"
};

// For all threads of the process; cannot be undone. Open descriptors stay usable: weights that are mapped,
// the socket to the front, the log. GPU drivers open files and devices at any time: a process that uses one
// must not call this.
Sandbox enter_sandbox();

}  // namespace gimbal
