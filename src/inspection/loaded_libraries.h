// The libraries of this process.
#pragma once
#include <string>
#include <vector>

namespace gimbal {

// Files whose code is loaded now, the program first; a plugin by the name under which it can be read
// ("/proc/self/fd/7"). Without libraries that have no file, such as the kernel's vDSO.
std::vector<std::string> loaded_libraries();

}  // namespace gimbal
