#include "engine/kernel_names.h"

#include <algorithm>

namespace gimbal {
namespace {

std::string feature_names(uint32_t bits, const gimbal_device_info& d) {
  std::string out;
  for (int bit = 0; d.feature_names && d.feature_names[bit]; bit++)
    if (bits >> bit & 1) out += (out.empty() ? "" : ", ") + std::string(d.feature_names[bit]);
  return out;
}

}  // namespace

std::string variant_of(const std::string& kernel) {
  const size_t first = kernel.find('.');
  if (first == std::string::npos) return "";
  return kernel.substr(first + 1, kernel.find('.', first + 1) - first - 1);
}

std::string needs_of(const gimbal_kernel_info& k, const gimbal_device_info& d) {
  return feature_names(k.needs, d);
}
std::string missing_of(const gimbal_kernel_info& k, const gimbal_device_info& d) {
  return feature_names(k.needs & ~d.features, d);
}

std::vector<Variant> variants_of(const Device& device) {
  std::vector<Variant> all;
  const gimbal_device_info info = device.describe();
  for (size_t i = 0; i < device.kernel_count(); i++) {
    const gimbal_kernel_info& k = device.kernel(i);
    const std::string name = variant_of(k.name);
    if (std::none_of(all.begin(), all.end(), [&](const Variant& v) { return v.name == name; }))
      all.push_back({name, missing_of(k, info)});
  }
  return all;
}

}  // namespace gimbal
