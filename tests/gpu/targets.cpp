// The example kernels in every language but C++: built, accepted by the language's own tool (in the build),
// embedded, and with the properties that keep results exact.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "gpu/modules.h"

namespace gimbal::gpu {

std::span<const KernelCode> example_spirv_modules();
std::span<const KernelCode> example_opencl_modules();
std::span<const KernelCode> example_wgsl_modules();
std::span<const KernelCode> example_msl_modules();
std::span<const KernelCode> example_ptx_modules();
std::span<const KernelCode> example_amdgcn_modules(std::string_view architecture);

namespace {

std::string text_of(const KernelCode& k) {
  return {reinterpret_cast<const char*>(k.code.data()), k.code.size()};
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
  return n;
}

void expect_table(std::span<const KernelCode> table) {
  ASSERT_EQ(table.size(), 5u);
  const KernelCode& k = table[2];
  EXPECT_EQ(k.name, "every_function");
  EXPECT_EQ(k.lanes, 32u);
  EXPECT_EQ(k.bindings, 5u);
  EXPECT_EQ(k.writable, 1u << 4);
  EXPECT_EQ(k.param_bytes, 8u);
  EXPECT_EQ(table[3].name, "row_sum");
  EXPECT_EQ(table[3].lanes, 16u);
  for (const KernelCode& code : table) EXPECT_GT(code.code.size(), 200u) << code.name;
}

TEST(SimtTargets, SpirvNeverContracts) {
  expect_table(example_spirv_modules());
  for (const KernelCode& k : example_spirv_modules()) {
    std::vector<uint32_t> words(k.code.size() / 4);
    memcpy(words.data(), k.code.data(), words.size() * 4);
    ASSERT_EQ(words[0], 0x07230203u) << k.name;
    EXPECT_EQ(words[1], 0x00010500u) << "SPIR-V 1.5, as Vulkan 1.2 has it";
    std::set<uint32_t> exact, operations;
    bool entry = false;
    for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
      ASSERT_GT(words[at] >> 16, 0u);
      uint32_t code = words[at] & 0xffff;
      if (code == 71 && words[at + 2] == 42) exact.insert(words[at + 1]);  // OpDecorate NoContraction
      if (code == 127 || code == 129 || code == 131 || code == 133 || code == 136)
        operations.insert(words[at + 2]);
      if (code == 15)
        entry =
            entry || (words[at + 1] == 5 && !strcmp(reinterpret_cast<const char*>(&words[at + 3]), "main"));
    }
    EXPECT_TRUE(entry) << k.name;
    EXPECT_FALSE(operations.empty()) << k.name;
    for (uint32_t id : operations) EXPECT_TRUE(exact.count(id)) << k.name << ": %" << id;
  }
}

// OpCapability GroupNonUniformShuffle: only in the module for devices that have it.
TEST(SimtTargets, SpirvExchangesInItsSecondModuleOnly) {
  auto exchanges = [](std::span<const uint8_t> module) {
    std::vector<uint32_t> words(module.size() / 4);
    memcpy(words.data(), module.data(), words.size() * 4);
    int capabilities = 0, uses = 0;
    for (size_t at = 5; at < words.size() && words[at] >> 16; at += words[at] >> 16) {
      capabilities += words[at] == 0x00020011 && words[at + 1] == 65;
      uses += (words[at] & 0xffff) == 346;  // OpGroupNonUniformShuffleXor
    }
    EXPECT_EQ(capabilities > 0, uses > 0);
    return uses;
  };
  for (const KernelCode& k : example_spirv_modules()) {
    EXPECT_EQ(k.trees, k.name == "joined") << k.name;
    EXPECT_EQ(exchanges(k.code), 0) << k.name;
    EXPECT_EQ(k.subgroup_code.empty(), !k.trees) << k.name;
    if (k.trees) { EXPECT_EQ(exchanges(k.subgroup_code), 4 + 6 + 3) << "steps of trees of 16, 64 and 8"; }
  }
}

TEST(SimtTargets, PtxRoundsEveryOperation) {
  expect_table(example_ptx_modules());
  for (const KernelCode& k : example_ptx_modules()) {
    std::string text = text_of(k);
    EXPECT_EQ(text.back(), '\0');
    EXPECT_EQ(count(text, ".visible .entry " + std::string(k.name) + "("), 1u);
    EXPECT_EQ(count(text, ".maxntid " + std::to_string(k.lanes) + ", 1, 1"), 1u);
    EXPECT_EQ(count(text, ".approx") + count(text, ".ftz"), 0u) << k.name;
  }
  std::string all = text_of(example_ptx_modules()[2]);
  EXPECT_EQ(count(all, "fma.rn.f32"), 1u);  // the one that was asked for
  EXPECT_EQ(count(all, "div.rn.f32"), 1u);
  EXPECT_EQ(count(all, "sqrt.rn.f32"), 1u);
  EXPECT_EQ(count(all, "dp4a.u32.s32"), 1u);
  EXPECT_GE(count(text_of(example_ptx_modules()[3]), "bar.sync"), 2u);
  // Steps of 32 lanes go through shared memory: of the trees of joined.k only that of 64.
  EXPECT_GE(count(text_of(example_ptx_modules()[4]), "shfl.sync.bfly.b32"), 4u + 5u + 3u);
}

TEST(SimtTargets, AmdCodeObjectsHoldEveryKernel) {
  for (const char* architecture : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    auto table = example_amdgcn_modules(architecture);
    expect_table(table);
    for (const KernelCode& k : table) {
      EXPECT_EQ(k.code.data(), table[0].code.data());
      std::string elf = text_of(k);
      EXPECT_EQ(elf.substr(0, 4),
                "\x7f"
                "ELF");
      EXPECT_EQ(elf[18], char(0xe0)) << "EM_AMDGPU";
      EXPECT_NE(elf.find(std::string(k.name) + ".kd"), std::string::npos) << architecture << " " << k.name;
    }
  }
  EXPECT_TRUE(example_amdgcn_modules("gfx803").empty());
}

// ds_swizzle_b32 with the mask that exchanges lanes 8 apart (its first word, of GFX9 and of all later ones).
TEST(SimtTargets, AmdLanesExchangeWithoutMemory) {
  for (const char* architecture : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    const std::string elf = text_of(example_amdgcn_modules(architecture)[4]);
    EXPECT_GE(count(elf, std::string("\x1f\x20\x7a\xd8", 4)) + count(elf, std::string("\x1f\x20\xd4\xd8", 4)),
              2u)
        << architecture;
  }
}

TEST(SimtTargets, TextsHaveTheirEntryPoint) {
  for (const KernelCode& k : example_opencl_modules()) {
    std::string text = text_of(k);
    EXPECT_EQ(text.find("#pragma OPENCL FP_CONTRACT OFF"), 0u);
    EXPECT_EQ(count(text, "void " + std::string(k.name) + "("), 1u);
  }
  for (const KernelCode& k : example_wgsl_modules()) {
    std::string text = text_of(k);
    EXPECT_EQ(count(text, "@compute @workgroup_size(" + std::to_string(k.lanes) + ") fn main("), 1u);
    EXPECT_EQ(count(text, "#") + count(text, "?"), 0u);
  }
  for (const KernelCode& k : example_msl_modules()) {
    std::string text = text_of(k);
    EXPECT_EQ(count(text, "kernel void main0("), 1u);
    EXPECT_EQ(count(text, "[[buffer(9)]]"), 1u) << "the parameters";
  }
  expect_table(example_opencl_modules());
  expect_table(example_wgsl_modules());
  expect_table(example_msl_modules());
}

}  // namespace
}  // namespace gimbal::gpu
