// Where the data of encoders of pictures and sounds lies: in the collection, or in tests/data/peer/vision,
// which has the families that the collection lacks (scripts/oracle/projectors.py).
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "support/golden.h"

namespace gimbal::test {

inline std::string own_vision_dir() { return GIMBAL_SOURCE_DIR "/tests/data/peer/vision/"; }

// A file of one of them, or a picture.
inline std::string vision_path(const std::string& name) {
  const std::string own = own_vision_dir() + name, folder = golden_dir() + "/vision/";
  if (std::filesystem::exists(own)) return own;
  return std::filesystem::exists(folder + name) ? folder + name : folder + "images/" + name;
}

// What both have of NAME.json.
inline std::vector<std::string> vision_goldens() {
  std::vector<std::string> all = golden_files("vision", ".json");
  for (const auto& file : std::filesystem::directory_iterator(own_vision_dir()))
    if (file.path().extension() == ".json") all.push_back(file.path().string());
  return all;
}

}  // namespace gimbal::test
