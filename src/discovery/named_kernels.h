// The kernels of the dual-backend roadmap as a registry: names, and which of them this machine can compute.
// Each name stands for rows of the backends' kernel tables.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/report.h"

namespace gimbal {

enum class NamedKernel : uint8_t {
#define GIMBAL_NAMED_KERNEL(name, ...) name,
#include "discovery/named_kernels.def"
  kCount
};
// A set: bit i is NamedKernel(i).
using NamedKernels = uint64_t;
constexpr bool has(NamedKernels set, NamedKernel k) { return set >> int(k) & 1; }

std::span<const NamedKernel> all_named_kernels();
const char* to_string(NamedKernel);
// By its name, in any case of letters; nullopt: there is no such name.
std::optional<NamedKernel> parse_named_kernel(std::string_view name);
// The shell patterns over names of kernel rows that it stands for; all must match a usable row.
std::vector<std::string> patterns_of(NamedKernel);

// Those that an open device can compute.
NamedKernels named_kernels_of(const Device&);

struct KernelCapability {
  NamedKernel kernel;
  std::vector<std::string> devices;  // that can compute it: "cpu:0"
  std::string why_not;               // if there are none
};
// Of the roadmap's kernels, in order.
std::vector<KernelCapability> kernel_capabilities(std::span<const BackendReport>);

// What can compute on this machine, in the roadmap's terms.
struct BackendCapabilities {
  bool cpu_native = false;                        // gimbal's own kernels on the CPU
  bool cuda = false;                              // on a CUDA device
  bool cpp_ffi = false;                           // a C++ inference library
  std::vector<NamedKernel> quantization_kernels;  // that some device can compute, in order
};
// `cpp_ffi`: whether such a library is usable; the search for it is the caller's (find_libraries()).
BackendCapabilities backend_capabilities(std::span<const BackendReport>, bool cpp_ffi);

}  // namespace gimbal
