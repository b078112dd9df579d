// What is concluded from symbols, needed libraries and code.
#include "inspection/verdict.h"

#include <gtest/gtest.h>

#include <set>

#include "support/made_elf.h"

namespace gimbal {
namespace {

using F = SymbolFamily;

std::set<std::string> keys(SymbolFamilies found) {
  std::set<std::string> all;
  for (size_t f = 0; f < kSymbolFamilies; f++)
    if (found[f]) all.insert(info(F(f)).key);
  return all;
}

LibraryVerdict judged(const test::ElfRecipe& recipe) {
  const std::string file = test::made_elf(recipe);
  const auto found = inspect_library(std::as_bytes(std::span(file)), "made.so");
  EXPECT_TRUE(found) << found.error().message;
  return found ? judge(*found) : LibraryVerdict{};
}

std::string kernels(const LibraryVerdict& v) {
  std::string all;
  for (const QuantizationKernel& k : v.kernels) all += k.name + "(" + k.device + ") ";
  return all;
}

TEST(LibraryVerdicts, ASymbolMayBelongToSeveralFamilies) {
  using Keys = std::set<std::string>;
  EXPECT_EQ(keys(families_of_symbol("bitnet_eval")), Keys{"bitnet"});
  EXPECT_EQ(keys(families_of_symbol("llama_decode")), Keys{"llama"});
  EXPECT_EQ(keys(families_of_symbol("ggml_cuda_i2_s_mul")), (Keys{"cuda", "ggml", "quantization"}));
  EXPECT_EQ(keys(families_of_symbol("ggml_bitnet_init")), (Keys{"bitnet", "ggml"}));
  EXPECT_EQ(keys(families_of_symbol("__cudaRegisterFatBinary")), Keys{"cuda"});
  EXPECT_EQ(keys(families_of_symbol("cuMemAlloc_v2")), Keys{"cuda"});
  EXPECT_EQ(keys(families_of_symbol("custom_allocator")), Keys{});
  EXPECT_EQ(keys(families_of_symbol("hipLaunchKernel")), Keys{"hip"});
  EXPECT_EQ(keys(families_of_symbol("vkCreateInstance")), Keys{"vulkan"});
  EXPECT_EQ(keys(families_of_symbol("clGetPlatformIDs")), Keys{"opencl"});
  EXPECT_EQ(keys(families_of_symbol("OBJC_CLASS_$_MTLCompileOptions")), Keys{"metal"});
  EXPECT_EQ(keys(families_of_symbol("gimbal_plugin_entry")), Keys{"plugin"});
  EXPECT_EQ(keys(families_of_symbol("dequantize_row_q4_0")), Keys{"quantization"});
  EXPECT_EQ(keys(families_of_symbol("llama_model_quantize")), Keys{"llama"});
  // Names of C++, by Itanium's and Microsoft's mangling.
  EXPECT_EQ(keys(families_of_symbol("_Z14llama_path_maxv")), Keys{"llama"});
  EXPECT_EQ(keys(families_of_symbol("_ZN12llama_vocab4sizeEv")), Keys{"llama"});
  EXPECT_EQ(keys(families_of_symbol("?llama_log@@YAXPEBD@Z")), Keys{"llama"});
  EXPECT_EQ(keys(families_of_symbol("_Z999999999999999999999llama_x")), Keys{});
}

TEST(LibraryVerdicts, FormatsOfKernels) {
  EXPECT_EQ(format_of_symbol("ggml_vec_dot_q4_0_q8_0"), "q4_0");
  EXPECT_EQ(format_of_symbol("ggml_vec_dot_iq2_s_q8_K"), "iq2_s");
  EXPECT_EQ(format_of_symbol("ggml_vec_dot_i2_i8_s"), "");
  EXPECT_EQ(format_of_symbol("quantize_i2_s"), "i2_s");
  EXPECT_EQ(format_of_symbol("dequantize_row_iq2_xxs"), "iq2_xxs");
  EXPECT_EQ(format_of_symbol("ggml_gemv_q4_0_8x8_q8_0"), "q4_0");
  EXPECT_EQ(format_of_symbol("quantize_row_q6_K_ref"), "q6_k");
  EXPECT_EQ(format_of_symbol("quantize_tl1"), "tl1");
  EXPECT_EQ(format_of_symbol("quantize_row"), "");
}

TEST(LibraryVerdicts, KernelsAreNamedAsInTheRoadmap) {
  const auto v = judged({.exported = {"quantize_i2_s", "ggml_vec_dot_iq2_s_q8_K", "quantize_tl1",
                                      "ggml_cuda_quantize_i2_s", "dequantize_row_q5_K"},
                         .undefined = {"quantize_q4_0"}});
  EXPECT_EQ(kernels(v), "I2S_QK256(CPU) I2S_QK256(CUDA) IQ2S_GGML(CPU) Q5_K(CPU) TL1(CPU) ");
  EXPECT_EQ(kernels(judged({.exported = {"ggml_cuda_i2_s_mul"}})), "I2S_QK256(CUDA) ");
}

TEST(LibraryVerdicts, GpusByNeededLibrariesNamesAndCode) {
  using Gpus = std::vector<std::string>;
  EXPECT_EQ(judged({.exported = {"llama_decode"}}).gpus, Gpus{});
  EXPECT_EQ(judged({.needed = {"libcudart.so.12"}}).gpus, Gpus{"CUDA"});
  EXPECT_EQ(judged({.needed = {"libcuda.so.1"}}).gpus, Gpus{"CUDA"});
  EXPECT_EQ(judged({.needed = {"libggml-cuda.so"}}).gpus, Gpus{"CUDA"});
  EXPECT_EQ(judged({.undefined = {"__cudaRegisterFatBinary"}}).gpus, Gpus{"CUDA"});
  EXPECT_EQ(judged({.needed = {"libamdhip64.so.6"}}).gpus, Gpus{"HIP"});
  EXPECT_EQ(judged({.needed = {"libvulkan.so.1"}}).gpus, Gpus{"Vulkan"});
  EXPECT_EQ(judged({.needed = {"libOpenCL.so.1"}}).gpus, Gpus{"OpenCL"});
  EXPECT_EQ(judged({.needed = {"libOpenCL.so.1", "libcublas.so.12"}}).gpus, (Gpus{"CUDA", "OpenCL"}));
  // ggml for AMD's GPUs keeps the names of CUDA.
  EXPECT_EQ(judged({.exported = {"ggml_backend_cuda_init"}, .needed = {"libamdhip64.so.6"}}).gpus,
            Gpus{"HIP"});
  EXPECT_EQ(
      judged({.exported = {"ggml_backend_cuda_init"}, .needed = {"libcudart.so.12", "libamdhip64.so.6"}})
          .gpus,
      (Gpus{"CUDA", "HIP"}));
  // Questions about devices, which are in every ggml of 2023.
  EXPECT_EQ(judged({.exported = {"ggml_cpu_has_cublas", "ggml_cpu_has_vulkan"}}).gpus, Gpus{});
  // Hooks of a framework, in C++, are no code.
  EXPECT_EQ(judged({.exported = {"_ZN2at4cuda6detail9getHooksEv"}}).gpus, Gpus{});
  // Drivers that are opened by name, in data between other texts.
  const auto data = [](const char* name) { return std::string("\0", 1) + name + std::string(64, '\0'); };
  EXPECT_EQ(judged({.data = data("libcuda.so.1")}).gpus, Gpus{"CUDA"});
  EXPECT_EQ(judged({.data = data("libvulkan.so.1")}).gpus, Gpus{"Vulkan"});
  EXPECT_EQ(judged({.data = data("libOpenCL.so.1")}).gpus, Gpus{"OpenCL"});
  EXPECT_EQ(judged({.data = data("libamdhip64.so")}).gpus, Gpus{"HIP"});
  EXPECT_EQ(judged({.data = data("nvcuda.dll")}).gpus, Gpus{"CUDA"});
  EXPECT_EQ(judged({.data = data("amdhip64_6.dll")}).gpus, Gpus{"HIP"});
  EXPECT_EQ(judged({.data = data("libMoltenVK.dylib")}).gpus, Gpus{"Vulkan"});
  EXPECT_EQ(judged({.data = data("the driver libcuda.so.1 is missing")}).gpus, Gpus{});
  EXPECT_EQ(judged({.data = data("libcuda.so.one")}).gpus, Gpus{});
  const std::string ptx = std::string("//\n.version 8.0\n.target sm_80\n") + std::string(64, '\0');
  EXPECT_EQ(judged({.data = ptx}).gpus, Gpus{"CUDA"});
}

TEST(LibraryVerdicts, Summaries) {
  EXPECT_EQ(summary(judged({.exported = {"llama_decode", "ggml_init"}})), "llama, ggml; CPU only");
  EXPECT_EQ(summary(judged({.exported = {"gimbal_plugin_entry"}, .needed = {"libvulkan.so.1"}})),
            "gimbal plugin; Vulkan");
  EXPECT_EQ(summary(judged({.undefined = {"llama_decode"}})), "no inference library; CPU only");
  EXPECT_TRUE(judged({.exported = {"ggml_backend_load_all"}}).loads_backends);
}

}  // namespace
}  // namespace gimbal
