// The roadmap's names of kernels: to and from text, what a device can compute, and why none can.
#include "discovery/named_kernels.h"

#include <gtest/gtest.h>

#include "device/backends.h"
#include "device/device.h"

namespace gimbal {
namespace {

KernelCapability capability(std::span<const BackendReport> reports, NamedKernel k) {
  return kernel_capabilities(reports)[size_t(k)];
}

TEST(NamedKernels, ToAndFromText) {
  EXPECT_EQ(all_named_kernels().size(), 13u);
  for (NamedKernel k : all_named_kernels()) {
    EXPECT_EQ(parse_named_kernel(to_string(k)), k);
    EXPECT_FALSE(patterns_of(k).empty()) << to_string(k);
  }
  EXPECT_EQ(parse_named_kernel("llama_cpu"), NamedKernel::Llama_CPU) << "in any case";
  EXPECT_FALSE(parse_named_kernel("Llama"));
  EXPECT_STREQ(to_string(NamedKernel::kCount), "");
}

TEST(NamedKernels, OfTheCpu) {
  auto cpu = Device::open(*(*linked_backends())(), 0);
  ASSERT_TRUE(cpu) << cpu.error().message;
  const NamedKernels here = named_kernels_of(**cpu);
  EXPECT_TRUE(has(here, NamedKernel::Llama_CPU));
  EXPECT_FALSE(has(here, NamedKernel::Llama_CUDA));
}

TEST(NamedKernels, EachHasDevicesOrAReason) {
  BackendReport cpu, cuda;
  cpu.backend = "cpu", cpu.present = cpu.available = true;
  cpu.devices.emplace_back().id = "cpu:0";
  cpu.devices.back().named_kernels = NamedKernels(1) << int(NamedKernel::Llama_CPU);
  cuda.backend = "cuda", cuda.present = true, cuda.message = "the driver is too old";
  const BackendReport both[] = {cpu, cuda};
  for (const KernelCapability& c : kernel_capabilities(both)) {
    SCOPED_TRACE(to_string(c.kernel));
    EXPECT_EQ(c.devices.empty(), !c.why_not.empty());
  }
  EXPECT_EQ(capability(both, NamedKernel::Llama_CPU).devices, std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(capability(both, NamedKernel::Llama_CUDA).why_not, "the driver is too old");
  EXPECT_EQ(capability(both, NamedKernel::TL1_X86_AVX2).why_not,
            "no device of cpu has usable rows cpu.avx2.mat_mul.tl1");
  EXPECT_EQ(capability({}, NamedKernel::Llama_CUDA).why_not, "this program has no cuda backend");
  cpu.devices.clear();
  EXPECT_NE(capability({&cpu, 1}, NamedKernel::Llama_CPU).why_not.find("has usable rows"), std::string::npos);
}

TEST(NamedKernels, CapabilitiesOfTheMachine) {
  BackendReport reports[2];
  reports[0].backend = "cpu", reports[1].backend = "cuda";
  BackendCapabilities c = backend_capabilities(reports, false);
  EXPECT_FALSE(c.cpu_native || c.cuda || c.cpp_ffi);
  EXPECT_TRUE(c.quantization_kernels.empty());
  reports[0].available = true;
  for (NamedKernel k : {NamedKernel::Llama_CPU, NamedKernel::I2S_QK256_AVX2}) {
    reports[0].devices.emplace_back();
    reports[0].devices.back().named_kernels = NamedKernels(1) << int(k);
  }
  c = backend_capabilities(reports, true);
  EXPECT_TRUE(c.cpu_native && !c.cuda && c.cpp_ffi);
  EXPECT_EQ(c.quantization_kernels,
            (std::vector<NamedKernel>{NamedKernel::I2S_QK256_AVX2, NamedKernel::Llama_CPU}));
  reports[1].available = true;
  EXPECT_TRUE(backend_capabilities(reports, false).cuda);
}

}  // namespace
}  // namespace gimbal
