#include "engine/backend_places.h"

#include <cstdlib>
#include <filesystem>

#include "base/folders.h"

// As installed, relative to the program's folder.
#ifndef GIMBAL_PLUGIN_FOLDER
#define GIMBAL_PLUGIN_FOLDER "../lib/gimbal"
#endif

namespace gimbal {

BackendPlaces backend_places() {
  namespace fs = std::filesystem;
  BackendPlaces places;
  if (const char* path = std::getenv("GIMBAL_BACKEND_PATH")) {
    const std::string list = path;
    for (size_t at = 0, end; at <= list.size(); at = end + 1) {
      end = std::min(list.find(':', at), list.size());
      if (end > at) places.folders.push_back(list.substr(at, end - at));
    }
  }
  if (const fs::path program = program_path(); !program.empty()) {
    places.folders.push_back(program.parent_path().string());
    places.folders.push_back((program.parent_path() / GIMBAL_PLUGIN_FOLDER).lexically_normal().string());
  }
  if (const fs::path library = library_path(); !library.empty()) {
    places.folders.push_back(library.parent_path().string());
    places.folders.push_back((library.parent_path() / "gimbal").string());
  }
  if (const std::string cache = cache_folder(); !cache.empty())
    places.cache_file = cache + "/backends.json", places.answers_file = cache + "/answers.json";
  return places;
}

}  // namespace gimbal
