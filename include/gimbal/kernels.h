// The kernel registry: kernels by name, which of them this machine can compute, and the CPU's instruction
// sets.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::v1 {

// Instruction sets of CPUs. Partially ordered: Scalar is below all others, AVX2 below AVX512, and NEON
// belongs to other processors, so it compares with Scalar only.
class SimdLevel {
 public:
  enum Value : uint8_t { Scalar, AVX2, AVX512, NEON };
  constexpr SimdLevel(Value v = Scalar) : value_(v) {}
  constexpr Value value() const { return value_; }

  friend constexpr bool operator==(SimdLevel a, SimdLevel b) { return a.value_ == b.value_; }
  friend constexpr std::partial_ordering operator<=>(SimdLevel a, SimdLevel b) {
    if (a.value_ == b.value_) return std::partial_ordering::equivalent;
    if (a.value_ == Scalar) return std::partial_ordering::less;
    if (b.value_ == Scalar) return std::partial_ordering::greater;
    if (a.value_ == NEON || b.value_ == NEON) return std::partial_ordering::unordered;
    return a.value_ < b.value_ ? std::partial_ordering::less : std::partial_ordering::greater;
  }

 private:
  Value value_;
};
const char* to_string(SimdLevel);                             // "AVX2"
std::optional<SimdLevel> parse_simd_level(std::string_view);  // in any case of letters

// A kernel of the registry, and the devices that can compute it.
struct NamedKernelState {
  std::string name;               // "I2S_QK256_AVX2"
  std::vector<std::string> rows;  // shell patterns over Kernel::name, all of which must match a usable kernel
  std::vector<std::string> devices;  // "cpu:0"; empty: none
  std::string why_not;               // if there are none

  bool capable() const { return !devices.empty(); }
};

struct KernelCapabilities {
  std::vector<NamedKernelState> kernels;  // of the dual-backend roadmap, in its order
  uint64_t flags = 0;                     // bit i: kernels[i] is capable
  bool cuda_available = false;            // a CUDA device can be opened
  SimdLevel simd_level;                   // the best that this program and the CPU have

  // By name, in any case of letters. nullopt: there is no such name.
  std::optional<bool> is_capable_of(std::string_view name) const;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
