// Which plugins are mapped into this process, as the system tells it.
#pragma once
#include <fstream>
#include <string>

namespace gimbal::test {

// Whether code of libgimbal-backend-<name>.so is in memory.
inline bool loaded(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libgimbal-backend-" + name + ".so") != std::string::npos) return true;
  return false;
}

}  // namespace gimbal::test
