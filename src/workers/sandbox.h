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

// A trial of the workers' sandbox on this machine: the kernel's parts of it, and the acts that it forbids.
struct SandboxTrial {
  Sandbox sandbox;
  int landlock = 0;  // version of the kernel's Landlock; 0: none
  // Acts that were tried in the sandbox: "read files", "start programs" and the like.
  std::vector<std::string> forbidden, possible;
};

// Enters the sandbox in a child process and tries each act there. This process stays as it is; it should not
// have started threads yet. If there is no child, `missing` has the reason.
SandboxTrial try_sandbox();

}  // namespace gimbal
