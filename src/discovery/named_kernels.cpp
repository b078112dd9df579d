#include "discovery/named_kernels.h"

#include <fnmatch.h>
#include <strings.h>

#include <algorithm>

#include "base/format.h"
#include "device/device.h"

namespace gimbal {
namespace {

struct NamedRow {
  const char* name;
  std::initializer_list<const char*> patterns;
};
const NamedRow& row_of(NamedKernel k) {
  static constexpr std::initializer_list<const char*> kPatterns[] = {
#define GIMBAL_NAMED_KERNEL(name, ...) {__VA_ARGS__},
#include "discovery/named_kernels.def"
  };
  static constexpr NamedRow kRows[] = {
#define GIMBAL_NAMED_KERNEL(name, ...) {#name, kPatterns[size_t(NamedKernel::name)]},
#include "discovery/named_kernels.def"
  };
  return kRows[size_t(k)];
}

// "cpu" of "cpu.avx2.mat_mul.i2_s".
std::string backend_of(NamedKernel k) {
  const std::string pattern = *row_of(k).patterns.begin();
  return pattern.substr(0, pattern.find('.'));
}

std::string why_not(NamedKernel k, const BackendReport* backend) {
  const std::string name = backend_of(k);
  if (!backend || !backend->present) return format("this program has no {} backend", name);
  if (!backend->available) return backend->message;
  return format("no device of {} has usable rows {}", name, fmt::join(patterns_of(k), ", "));
}

}  // namespace

std::span<const NamedKernel> all_named_kernels() {
  static constexpr NamedKernel kAll[] = {
#define GIMBAL_NAMED_KERNEL(name, ...) NamedKernel::name,
#include "discovery/named_kernels.def"
  };
  return kAll;
}

const char* to_string(NamedKernel k) { return k < NamedKernel::kCount ? row_of(k).name : ""; }

std::optional<NamedKernel> parse_named_kernel(std::string_view name) {
  for (NamedKernel k : all_named_kernels())
    if (strcasecmp(std::string(name).c_str(), to_string(k)) == 0) return k;
  return std::nullopt;
}

std::vector<std::string> patterns_of(NamedKernel k) {
  return {row_of(k).patterns.begin(), row_of(k).patterns.end()};
}

NamedKernels named_kernels_of(const Device& device) {
  const uint32_t features = device.describe().features;
  const auto usable = [&](const char* pattern) {
    for (size_t i = 0; i < device.kernel_count(); i++) {
      const gimbal_kernel_info& row = device.kernel(i);
      if (!(row.needs & ~features) && fnmatch(pattern, row.name, 0) == 0) return true;
    }
    return false;
  };
  NamedKernels set = 0;
  for (NamedKernel k : all_named_kernels())
    if (std::ranges::all_of(row_of(k).patterns, usable)) set |= NamedKernels(1) << int(k);
  return set;
}

std::vector<KernelCapability> kernel_capabilities(std::span<const BackendReport> reports) {
  std::vector<KernelCapability> all;
  for (NamedKernel k : all_named_kernels()) {
    KernelCapability c{k, {}, {}};
    const BackendReport* backend = nullptr;
    for (const BackendReport& r : reports) {
      if (r.backend == backend_of(k)) backend = &r;
      for (const DeviceReport& d : r.devices)
        if (has(d.named_kernels, k)) c.devices.push_back(d.id);
    }
    if (c.devices.empty()) c.why_not = why_not(k, backend);
    all.push_back(std::move(c));
  }
  return all;
}

BackendCapabilities backend_capabilities(std::span<const BackendReport> reports, bool cpp_ffi) {
  BackendCapabilities c;
  c.cpp_ffi = cpp_ffi;
  for (const BackendReport& r : reports) {
    if (r.backend == "cpu") c.cpu_native = r.available;
    if (r.backend == "cuda") c.cuda = r.available;
  }
  for (const KernelCapability& k : kernel_capabilities(reports))
    if (!k.devices.empty()) c.quantization_kernels.push_back(k.kernel);
  return c;
}

}  // namespace gimbal
