// The file names of split models: NAME-00001-of-0000N.gguf and its siblings.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gimbal {

struct SplitName {
  std::string stem;     // folder and NAME
  uint32_t number = 1;  // from 1, as in the file name
  uint32_t count = 1;

  std::string path(uint32_t part_number) const;  // of another part of the same model
};

// nullopt when the path does not end like a part of a split model.
std::optional<SplitName> split_name(std::string_view path);

}  // namespace gimbal
