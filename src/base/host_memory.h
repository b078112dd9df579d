// How much memory this process may still take: what the machine has, and what the control groups around the
// process allow (Linux: cgroup v2 and v1, every group up to the root, and `ulimit -v`).
#pragma once
#include <cstdint>
#include <string>

namespace gimbal {

struct HostMemory {
  uint64_t total = 0;      // bytes; of the machine, or the smallest limit
  uint64_t available = 0;  // bytes that can be had now without swapping anybody out
  std::string limited_by;  // "" or what leaves the least: "/sys/fs/cgroup/box/memory.max", "ulimit -v"
};

// `root`: where /proc and /sys are looked for; for tests. A file that is missing or not understood is no
// limit.
HostMemory host_memory(const std::string& root = "");

}  // namespace gimbal
