#include "tensor/shape.h"

#include "base/format.h"

namespace gimbal {

std::string to_string(const Shape& s) {
  std::string out = format("{}[", info(s.type).name);
  for (int i = 0; i < s.rank; i++) out += (i ? ", " : "") + std::to_string(s.dim[i]);
  return out + "]";
}

}  // namespace gimbal
