#include "gpu/options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/format.h"

namespace gimbal::gpu {

Failure Options::parse(const char* lines, Options* out) {
  std::string_view rest = lines ? lines : "";
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      return {Failure::Invalid, format("'{}' is not an option: expected key=value", line)};
    out->left_.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return {};
}

std::optional<std::string> Options::take(const std::string& key) {
  std::optional<std::string> value;
  std::erase_if(left_, [&](const auto& o) { return o.first == key && (value = o.second, true); });
  return value;
}

Failure Options::take_number(const std::string& key, uint64_t* out) {
  const auto value = take(key);
  if (!value) return {};
  const char* end = value->data() + value->size();
  auto [at, wrong] = std::from_chars(value->data(), end, *out);
  if (wrong == std::errc() && at == end && !value->empty()) return {};
  return {Failure::Invalid, format("{} must be a whole number, not '{}'", key, *value)};
}

Failure Options::take_flag(const std::string& key, bool* out) {
  uint64_t n = *out;
  if (Failure f = take_number(key, &n)) return f;
  *out = n != 0;
  return n < 2 ? Failure() : Failure{Failure::Invalid, format("{} must be 0 or 1, not {}", key, n)};
}

Failure Options::unknown() const {
  if (left_.empty()) return {};
  return {Failure::Invalid, format("unknown option '{}={}'", left_[0].first, left_[0].second)};
}

}  // namespace gimbal::gpu
