// The code objects that were built, one for each AMD architecture: every kernel of kernels.def is in it,
// takes the arguments that the runtime passes, needs nothing from elsewhere, and runs with the float modes
// that the dialect promises.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backends/driver_api/kernel_names.h"
#include "backends/fake_driver/modules.h"
#include "gpu/modules.h"
#include "gpu/unpacked.h"

namespace gimbal::gpu {
namespace {

// Of models, and of tensors.
class CodeObjects : public testing::TestWithParam<const char*> {
 protected:
  const std::vector<KernelCode> tables_[2] = {test::unpacked(amdgcn_modules(GetParam())),
                                              test::unpacked(tensor_amdgcn_modules(GetParam()))};
};

TEST_P(CodeObjects, HaveEveryKernel) {
  EXPECT_EQ(test::names_of(tables_[0]), test::names_in_kernels_def());
  EXPECT_EQ(test::names_of(tables_[1]), test::names_in_kernels_def("gpu/tensors/kernels.def"));
}

TEST_P(CodeObjects, TakeTheArgumentsThatAreGiven) {
  for (const auto& table : tables_) {
    const auto object = test::read_code_object(table[0].code);
    ASSERT_TRUE(object);
    std::map<std::string, test::AmdKernel> kernels;
    for (const auto& k : object->kernels) kernels[k.name] = k;
    EXPECT_EQ(kernels.size(), table.size()) << "only the kernels have names outside";
    std::printf("%zu kernels, %zu bytes\n", kernels.size(), table[0].code.size());
    for (const KernelCode& k : table) {
      EXPECT_EQ(k.code.data(), table[0].code.data());
      const auto it = kernels.find(std::string(k.name));
      ASSERT_NE(it, kernels.end()) << k.name;
      EXPECT_EQ(it->second.argument_bytes, 8 * (k.bindings + 1) + k.param_bytes)
          << k.name << ": the buffers, the step data, the parameters";
      EXPECT_LE(it->second.shared_bytes, 65536u) << k.name;
      // Round to nearest even, denormals kept, for 32 bits and for 16 and 64.
      EXPECT_EQ(it->second.float_mode, 0xf0u) << k.name;
    }
  }
}

TEST_P(CodeObjects, NeedNothingElse) {
  for (const auto& table : tables_) {
    const auto object = test::read_code_object(table[0].code);
    ASSERT_TRUE(object);
    EXPECT_EQ(object->undefined, std::vector<std::string>());
  }
}

TEST_P(CodeObjects, AreForTheirArchitectureAndForOldLoaders) {
  static const std::map<std::string, uint32_t> machines = {
      {"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx1030", 0x36}, {"gfx1100", 0x41}, {"gfx1201", 0x4e}};
  for (const auto& table : tables_) {
    const auto object = test::read_code_object(table[0].code);
    ASSERT_TRUE(object);
    EXPECT_EQ(object->machine, machines.at(GetParam()));
    EXPECT_EQ(object->abi, 2u) << "version 4, which ROCm knows since 4.5";
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CodeObjects,
                         testing::Values("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"),
                         [](auto& p) { return std::string(p.param); });

TEST(CodeObjects, OfOtherArchitecturesAreNotThere) {
  for (const char* name : {"", "gfx", "gfx906", "gfx90a:xnack+", "GFX90A", "gfx11000"})
    EXPECT_TRUE(amdgcn_modules(name).empty() && tensor_amdgcn_modules(name).empty()) << name;
}

}  // namespace
}  // namespace gimbal::gpu
