// The kernel registry: names, the order of instruction sets, and what this machine can compute.
#include "engine/kernel_registry.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"
#include "discovery/registry.h"

namespace gimbal {
namespace {

// The thirteen names of the roadmap, in its order.
constexpr const char* kRoadmap[] = {
    "I2S_QK256_Scalar", "I2S_QK256_AVX2", "I2S_QK256_AVX512", "I2S_QK256_NEON", "TL1_ARM_NEON",
    "TL1_X86_AVX2",     "TL1_X86_AVX512", "TL2_X86_AVX512",   "IQ2S_GGML_CPU",  "IQ2S_GGML_CUDA",
    "I2S_QK256_CUDA",   "Llama_CUDA",     "Llama_CPU"};

TEST(KernelRegistry, AllNamesAreListedAndParsed) {
  const auto all = all_named_kernels();
  ASSERT_EQ(all.size(), std::size(kRoadmap));
  for (size_t i = 0; i < all.size(); i++) {
    EXPECT_STREQ(to_string(all[i]), kRoadmap[i]);
    EXPECT_EQ(parse_named_kernel(kRoadmap[i]), all[i]);
    std::string lower = kRoadmap[i];
    for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
    EXPECT_EQ(parse_named_kernel(lower), all[i]);
    EXPECT_FALSE(patterns_of(all[i]).empty());
  }
  for (const char* wrong : {"", "I2S", "I2S_QK256_", "I2S_QK256_Scalar ", "Llama_CPU2"})
    EXPECT_FALSE(parse_named_kernel(wrong).has_value()) << wrong;
}

TEST(KernelRegistry, SimdLevelsArePartiallyOrdered) {
  using L = SimdLevel;
  constexpr L::Value kAll[] = {L::Scalar, L::AVX2, L::AVX512, L::NEON};
  for (L a : kAll) {
    EXPECT_TRUE(a == a);
    EXPECT_EQ(parse_simd_level(to_string(a)), a);
    const L scalar = L::Scalar;
    EXPECT_EQ(scalar < a && a > scalar && !(a < scalar), a != scalar);
  }
  EXPECT_TRUE(L(L::AVX2) < L(L::AVX512));
  EXPECT_TRUE(L(L::AVX512) >= L(L::AVX2));
  for (L avx : {L::AVX2, L::AVX512}) {
    const L neon = L::NEON;
    EXPECT_EQ(avx <=> neon, std::partial_ordering::unordered);
    EXPECT_FALSE(avx < neon || avx > neon || avx <= neon || avx >= neon || avx == neon);
  }
  EXPECT_EQ(parse_simd_level("avx512"), SimdLevel(L::AVX512));
  EXPECT_FALSE(parse_simd_level("SSE").has_value());
}

// The flags of /proc/cpuinfo, as the kernel reads them.
std::set<std::string> cpu_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> out;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags") || line.starts_with("Features")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;) out.insert(word);
      break;
    }
  return out;
}

TEST(KernelRegistry, SaysWhatThisMachineCanCompute) {
  const std::vector<BackendReport> reports = discover_backends();
  const KernelCapabilities all = kernel_registry(reports);
  ASSERT_EQ(all.kernels.size(), std::size(kRoadmap));
  uint64_t flags = 0;
  for (size_t i = 0; i < all.kernels.size(); i++) {
    const NamedKernelState& k = all.kernels[i];
    EXPECT_EQ(k.name, kRoadmap[i]);
    EXPECT_EQ(k.capable(), k.why_not.empty()) << k.name;
    EXPECT_EQ(all.is_capable_of(k.name), k.capable());
    if (k.capable()) flags |= uint64_t(1) << i;
  }
  EXPECT_EQ(all.flags, flags);
  EXPECT_FALSE(all.is_capable_of("no such kernel").has_value());
  EXPECT_EQ(all.is_capable_of("I2S_QK256_Scalar"), true);
  EXPECT_EQ(all.is_capable_of("Llama_CPU"), true);
#ifdef __x86_64__
  EXPECT_EQ(all.is_capable_of("I2S_QK256_NEON"), false);
  EXPECT_EQ(all.is_capable_of("TL1_ARM_NEON"), false);
  const auto cpu = cpu_flags();
  const bool avx2 = cpu.contains("avx2") && cpu.contains("fma") && cpu.contains("f16c"),
             avx512 = avx2 && cpu.contains("avx512f") && cpu.contains("avx512bw") && cpu.contains("avx512vl");
  EXPECT_EQ(all.simd_level, SimdLevel(avx512 ? SimdLevel::AVX512
                                      : avx2 ? SimdLevel::AVX2
                                             : SimdLevel::Scalar));
#endif
}

// What is true can be forced, and what is false is refused: the same rows decide.
TEST(KernelRegistry, AgreesWithTheRowsOfOpenDevices) {
  auto cpu = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(bool(cpu));
  const NamedKernels set = named_kernels_of(*cpu->device);
  EXPECT_TRUE(has(set, NamedKernel::Llama_CPU));
  EXPECT_FALSE(has(set, NamedKernel::Llama_CUDA));
  for (const auto& [kernel, variant] : {std::pair(NamedKernel::I2S_QK256_Scalar, "baseline"),
                                        {NamedKernel::I2S_QK256_AVX2, "avx2"},
                                        {NamedKernel::I2S_QK256_AVX512, "avx512"},
                                        {NamedKernel::I2S_QK256_NEON, "neon"},
                                        {NamedKernel::TL1_X86_AVX2, "avx2"},
                                        {NamedKernel::TL1_X86_AVX512, "avx512"},
                                        {NamedKernel::TL2_X86_AVX512, "avx512"},
                                        {NamedKernel::TL1_ARM_NEON, "neon"}})
    EXPECT_EQ(bool(open_device({"cpu", 0, true, std::string("threads=1\nvariant=") + variant})),
              has(set, kernel))
        << to_string(kernel);
}

TEST(KernelRegistry, CountsDevicesOfReports) {
  BackendReport cuda;
  cuda.backend = "cuda", cuda.present = cuda.available = true;
  DeviceReport device;
  device.id = "cuda:1", device.named_kernels = uint64_t(1) << int(NamedKernel::I2S_QK256_CUDA);
  cuda.devices.push_back(device);
  const KernelCapabilities all = kernel_registry(std::vector{cuda});
  EXPECT_TRUE(all.cuda_available);
  EXPECT_EQ(all.is_capable_of("I2S_QK256_CUDA"), true);
  EXPECT_EQ(all.kernels[10].devices, std::vector<std::string>{"cuda:1"});
  EXPECT_EQ(all.is_capable_of("Llama_CUDA"), false);
  EXPECT_NE(all.kernels[11].why_not.find("no device of cuda has usable rows cuda.*.mat_mul.q4_0"),
            std::string::npos);
  EXPECT_EQ(all.kernels[12].why_not, "this program has no cpu backend");
  const Json j = registry_json(all);
  EXPECT_EQ(j["names"].size(), 13u);
  EXPECT_EQ(j["flags"], all.flags);
  EXPECT_EQ(j["simd_level"], "Scalar");
}

}  // namespace
}  // namespace gimbal
