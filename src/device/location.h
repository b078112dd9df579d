// Which device: the backend's name and a number, as people write it.
#pragma once
#include <compare>
#include <functional>
#include <string>

#include "base/result.h"

namespace gimbal {

struct DeviceLocation {
  std::string backend;  // "cuda"
  int index = 0;        // among its devices

  // "cuda:1"; "cuda" is its device 0. Whether there is such a device is not looked at. Errors: Usage.
  static Result<DeviceLocation> parse(const std::string& text);
  std::string id() const;  // "cuda:1"; parse() gives the same again
  auto operator<=>(const DeviceLocation&) const = default;
};

}  // namespace gimbal

template <>
struct std::hash<gimbal::DeviceLocation> {
  size_t operator()(const gimbal::DeviceLocation& l) const { return std::hash<std::string>()(l.id()); }
};
