// A decoded picture.
#pragma once
#include <cstdint>
#include <vector>

namespace gimbal {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // [height][width][3]
};

}  // namespace gimbal
