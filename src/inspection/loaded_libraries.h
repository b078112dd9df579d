// Libraries in a process: those of this one, and one that is loaded for a trial.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

// Files whose code is loaded now, the program first; a plugin by the name under which it can be read
// ("/proc/self/fd/7"). Without libraries that have no file, such as the kernel's vDSO.
std::vector<std::string> loaded_libraries();

// Loads a library and reports the problems of the loader. Its code runs: only in a child process.
inline constexpr std::string_view kBetweenProblems = " | ";

// "" if it loads, else each problem, separated: "needed NAME" or "load REASON". The loader stops at the first
// missing library, so each of `needed` is tried.
std::string load_problems(const std::string& path, const std::vector<std::string>& needed);

}  // namespace gimbal
