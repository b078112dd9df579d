// A trial of the workers' sandbox on this machine: the kernel's parts of it, and the acts that it forbids.
#pragma once
#include <string>
#include <vector>

#include "workers/sandbox.h"

namespace gimbal {

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
