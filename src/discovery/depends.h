// What a backend's answer depends on, and whether that is still as it was: so that nobody loads a driver
// only to hear the same again. Lines as depends_on() gives them (abi.h): "VARIABLE", "PREFIX*", "/a/file",
// "/a/folder/PREFIX*SUFFIX".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gimbal {

// The libraries that this process has mapped from files, sorted.
std::vector<std::string> mapped_libraries();

// What `backend_says` together with all that decides which libraries a loader finds: its variables, its
// list, the folders it looks into, the libraries that are mapped or were `loaded`, but not `before`, and the
// folders of all of them. Empty where a variable makes the loader look into the folder that the process runs
// in: then it cannot be told.
std::vector<std::string> all_depends(const char* backend_says, const std::vector<std::string>& before,
                                     std::vector<std::string> loaded);

struct DependsState {
  std::string digest;  // equal as long as every variable, file and folder is; also of whose process it is
  int64_t last_change = 0;  // of a file or folder, nanoseconds since 1970
};
// Opens no file, loads nothing; looks at each file's place, size, times, mode and owner.
DependsState state_of(const std::vector<std::string>& depends);

// Since when this system runs, as an id; empty where it does not tell.
std::string boot_id();

}  // namespace gimbal
