// Loads a library and reports the problems of the loader. Its code runs: only in a child process.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gimbal {

inline constexpr std::string_view kBetweenProblems = " | ";

// "" if it loads, else each problem, separated: "needed NAME" or "load REASON". The loader stops at the first
// missing library, so each of `needed` is tried.
std::string load_problems(const std::string& path, const std::vector<std::string>& needed);

}  // namespace gimbal
