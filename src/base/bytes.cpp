#include "base/bytes.h"

#include "base/format.h"

namespace gimbal {

std::string human_bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double v = double(n);
  int unit = 0;
  while (v >= 999.5 && unit < 6) v /= 1000, unit++;
  if (unit == 0) return format("{} B", n);
  return format("{:.{}f} {}", v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace gimbal
