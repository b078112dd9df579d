// Where the stand-ins for libllama lie: llama/shim.cpp.
#pragma once
#include <filesystem>
#include <string>

namespace gimbal::test {

// `which`: shim, larger.
inline std::string llama_shim(const std::string& which = "shim") {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "llama" / which / "libllama.so")
      .string();
}

}  // namespace gimbal::test
