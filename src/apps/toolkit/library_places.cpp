#include "apps/toolkit/library_places.h"

#include <filesystem>

#include "base/folders.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

void add_folders(std::vector<std::string>& to, const std::string& list) {
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    if (end > at) to.push_back(list.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

LibraryPlaces library_places() {
  LibraryPlaces p;
  p.library_folder = environment_variable("BITNET_CROSSVAL_LIBDIR");
  p.root = environment_variable("BITNET_CPP_DIR");
  p.old_root = environment_variable("BITNET_CPP_PATH");
  if (const std::string own = cache_folder(); !own.empty())
    p.cached_root = (fs::path(own).parent_path() / "bitnet_cpp").string();
  if (const std::string program = program_path(); !program.empty()) {
    const fs::path folder = fs::path(program).parent_path();
    p.beside = {folder.string(), (folder / "lib").string(), (folder.parent_path() / "lib").string()};
  }
#ifdef __APPLE__
  add_folders(p.system, environment_variable("DYLD_LIBRARY_PATH"));
  for (const char* f : {"/opt/homebrew/lib", "/usr/local/lib"}) p.system.push_back(f);
#else
  add_folders(p.system, environment_variable("LD_LIBRARY_PATH"));
  for (const char* f : {
         "/usr/local/lib", "/usr/local/lib64", "/usr/lib64",
#if defined(__x86_64__)
             "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
                        "/usr/lib/aarch64-linux-gnu",
#endif
             "/usr/lib"
       })
    p.system.push_back(f);
#endif
  return p;
}

}  // namespace gimbal
