// How much more memory this process may use: the machine's memory and the limits of the control groups around
// the process (Linux: cgroup v2 and v1, every group up to the root, and `ulimit -v`).
#pragma once
#include <cstdint>
#include <string>

namespace gimbal {

struct HostMemory {
  uint64_t total = 0;      // bytes; of the machine, or the smallest limit
  uint64_t available = 0;  // bytes that can be allocated now without swapping
  std::string limited_by;  // "" or the tightest limit: "/sys/fs/cgroup/box/memory.max", "ulimit -v"
};

// `root`: the folder that contains proc and sys; tests replace it. A missing or unreadable file sets no
// limit.
HostMemory host_memory(const std::string& root = "");

}  // namespace gimbal
