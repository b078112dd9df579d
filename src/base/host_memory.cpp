#include "base/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/file.h"

namespace gimbal {
namespace {

std::optional<uint64_t> number(const std::string& text) {
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end != text.data() ? std::optional(n) : std::nullopt;  // "max": no limit
}

std::optional<uint64_t> number_in(const std::string& path) { return number(first_line(path)); }

// "key   123 kB" or "key 123": the number.
std::optional<uint64_t> field(const std::vector<std::string>& lines, const std::string& key) {
  for (const std::string& line : lines)
    if (line.rfind(key, 0) == 0)
      if (auto at = line.find_first_of("0123456789", key.size()); at != std::string::npos)
        return number(line.substr(at));
  return std::nullopt;
}

// File names of one cgroup version. Reclaimable page cache counts as used but is available. For "no limit",
// version 1 reports a number larger than any machine's memory.
struct Version {
  const char *limit, *used, *droppable;
};
constexpr Version kV2 = {"memory.max", "memory.current", "inactive_file "};
constexpr Version kV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};

// Every group from `group` up to `mount`. In a container the path may name groups outside it, which are not
// visible; the mount itself is then the container's group.
void apply(HostMemory& m, uint64_t machine, const std::string& mount, std::string group, const Version& v) {
  for (;;) {
    const std::string folder = mount + (group == "/" ? "" : group);
    if (const auto limit = number_in(folder + "/" + v.limit); limit && *limit < machine) {
      const uint64_t used = number_in(folder + "/" + v.used).value_or(0);
      const uint64_t droppable =
          std::min(used, field(lines_of(folder + "/memory.stat"), v.droppable).value_or(0));
      const uint64_t left = *limit - std::min(*limit, used - droppable);
      m.total = std::min(m.total, *limit);
      if (left < m.available) m.available = left, m.limited_by = folder + "/" + v.limit;
    }
    if (group.empty() || group == "/") return;
    group.resize(group.rfind('/'));
  }
}

// The limit of `ulimit -v`: no allocation beyond it succeeds, regardless of the machine's memory.
void apply_address_space(HostMemory& m, const std::string& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const auto pages = number_in(root + "/proc/self/statm");  // its first number
  if (!pages) return;
  const uint64_t used = *pages * uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t most = limit.rlim_cur, left = most - std::min(most, used);
  m.total = std::min(m.total, most);
  if (left < m.available) m.available = left, m.limited_by = "ulimit -v";
}

// Part of a line "<id>:<controllers>:<path>"; the controllers are separated by commas.
bool controls_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  HostMemory m;
  const std::vector<std::string> machine_memory = lines_of(root + "/proc/meminfo");
  m.total = field(machine_memory, "MemTotal:").value_or(0) * 1024;
  m.available = field(machine_memory, "MemAvailable:").value_or(0) * 1024;
  if (m.total == 0) {
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    m.total = m.available = pages > 0 && bytes > 0 ? uint64_t(pages) * uint64_t(bytes) : 0;
  }
  const uint64_t machine = m.total;
  apply_address_space(m, root);
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) {
      // Version 2 alone, or beside version 1.
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        apply(m, machine, root + mount, path, kV2);
    } else if (controls_memory(controllers)) {
      apply(m, machine, root + "/sys/fs/cgroup/memory", path, kV1);
    }
  }
  return m;
}

}  // namespace gimbal
