#include "device/location.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace gimbal {

Result<DeviceLocation> DeviceLocation::parse(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  DeviceLocation l{text.substr(0, colon), 0};
  const bool named = !l.backend.empty() && std::all_of(l.backend.begin(), l.backend.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  bool numbered = true;
  if (colon < text.size()) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, l.index);
    numbered = error == std::errc() && stop == end && l.index >= 0;
  }
  if (!named || !numbered)
    return Error{Code::Usage, format("'{}' is not a device", text),
                 "write the backend and a number from 0, such as cuda:0"};
  return l;
}

std::string DeviceLocation::id() const { return format("{}:{}", backend, index); }

}  // namespace gimbal
