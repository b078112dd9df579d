#include "engine/kernel_registry.h"

#include <strings.h>

#include <algorithm>

#include "base/json.h"

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

namespace v1 {

namespace {
constexpr const char* kLevels[] = {"Scalar", "AVX2", "AVX512", "NEON"};
}

const char* to_string(SimdLevel level) { return kLevels[level.value()]; }

std::optional<SimdLevel> parse_simd_level(std::string_view name) {
  for (uint8_t i = 0; i < std::size(kLevels); i++)
    if (strcasecmp(std::string(name).c_str(), kLevels[i]) == 0) return SimdLevel(SimdLevel::Value(i));
  return std::nullopt;
}

std::optional<bool> KernelCapabilities::is_capable_of(std::string_view name) const {
  const auto kernel = parse_named_kernel(name);
  if (!kernel) return std::nullopt;
  return (flags >> int(*kernel) & 1) != 0;
}

}  // namespace v1

KernelCapabilities kernel_registry(std::span<const BackendReport> reports) {
  KernelCapabilities out;
  for (KernelCapability& c : kernel_capabilities(reports)) {
    if (!c.devices.empty()) out.flags |= uint64_t(1) << int(c.kernel);
    out.kernels.push_back(
        {to_string(c.kernel), patterns_of(c.kernel), std::move(c.devices), std::move(c.why_not)});
  }
  for (const BackendReport& r : reports) out.cuda_available |= r.backend == "cuda" && r.available;
  // Each of these rows exists once for its instruction set.
  for (const auto& [kernel, level] : {std::pair(NamedKernel::I2S_QK256_AVX2, SimdLevel::AVX2),
                                      {NamedKernel::I2S_QK256_AVX512, SimdLevel::AVX512},
                                      {NamedKernel::I2S_QK256_NEON, SimdLevel::NEON}})
    if (has(out.flags, kernel)) out.simd_level = level;
  return out;
}

Json registry_json(const KernelCapabilities& all) {
  Json names = Json::array();
  for (const NamedKernelState& k : all.kernels)
    names.push_back({{"name", k.name},
                     {"capable", k.capable()},
                     {"devices", k.devices},
                     {"why_not", k.why_not},
                     {"rows", k.rows}});
  return {{"names", std::move(names)},
          {"flags", all.flags},
          {"cuda_available", all.cuda_available},
          {"simd_level", to_string(all.simd_level)}};
}

}  // namespace gimbal
