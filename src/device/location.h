// Identifies a device by backend name and index, as users write it.
#pragma once
#include <compare>
#include <functional>
#include <string>

#include "base/result.h"

namespace gimbal {

struct DeviceLocation {
  std::string backend;  // "cuda"
  int index = 0;        // among its devices

  // "cuda:1"; "cuda" is device 0. Does not check that the device exists. Errors: Usage.
  static Result<DeviceLocation> parse(const std::string& text);
  std::string id() const;  // "cuda:1"; the inverse of parse()
  auto operator<=>(const DeviceLocation&) const = default;
};

}  // namespace gimbal

template <>
struct std::hash<gimbal::DeviceLocation> {
  size_t operator()(const gimbal::DeviceLocation& l) const { return std::hash<std::string>()(l.id()); }
};
