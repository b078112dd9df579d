// The inputs of a backend's probe result, and whether they changed: used to avoid loading a driver again for
// the same result. Lines have the format of depends_on() (abi.h): "VARIABLE", "PREFIX*", "/a/file",
// "/a/folder/PREFIX*SUFFIX".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gimbal {

// The file-backed libraries mapped into this process, sorted.
std::vector<std::string> mapped_libraries();

// `backend_says` plus everything that determines which libraries the loader finds: its environment variables,
// its configuration, its search folders, the libraries mapped now or `loaded` but not in `before`, and their
// folders. Empty if a variable adds the current working directory to the search path: the result is then
// unpredictable.
std::vector<std::string> all_depends(const char* backend_says, const std::vector<std::string>& before,
                                     std::vector<std::string> loaded);

struct DependsState {
  std::string digest;       // equal while all variables, files and folders are unchanged; includes the user
  int64_t last_change = 0;  // of a file or folder, nanoseconds since 1970
};
// Opens no file and loads nothing; checks each file's location, size, times, mode and owner.
DependsState state_of(const std::vector<std::string>& depends);

// The id of the current system boot; empty if unavailable.
std::string boot_id();

}  // namespace gimbal
