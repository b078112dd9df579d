#include "inspection/loaded_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/format.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestNeed = 8;  // of libraries that need libraries

// A library that the loader does not find may lie beside the one that needs it: packages of npm contain
// libraries without a search path. A problem is "needed NAME" or "load REASON".
void* open_with_neighbours(const std::string& path, std::vector<std::string>& problems, int depth = 0) {
  std::set<std::string> tried;
  for (;;) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* said = dlerror();
    const std::string text = said ? said : "unknown reason";
    const std::string name = text.substr(0, text.find(": cannot open shared object file"));
    const fs::path neighbour = fs::path(path).parent_path() / name;
    std::error_code e;
    const bool missing = name.size() < text.size() && name.find('/') == std::string::npos;
    if (missing && depth < kDeepestNeed && tried.insert(name).second && fs::is_regular_file(neighbour, e) &&
        open_with_neighbours(neighbour.string(), problems, depth + 1))
      continue;
    problems.push_back(missing ? "needed " + name : "load " + text);
    return nullptr;
  }
}

}  // namespace

std::string load_problems(const std::string& path, const std::vector<std::string>& needed) {
  std::vector<std::string> problems;
  if (open_with_neighbours(path, problems)) return "";
  for (const std::string& n : needed) {
    const std::string beside = (fs::path(path).parent_path() / n).string();
    if (dlopen(n.c_str(), RTLD_LAZY | RTLD_LOCAL)) continue;
    const std::string line = "needed " + n;
    std::error_code e;
    if (!fs::exists(beside, e) && std::find(problems.begin(), problems.end(), line) == problems.end())
      problems.push_back(line);
  }
  return fmt::to_string(fmt::join(problems, kBetweenProblems));
}

}  // namespace gimbal
