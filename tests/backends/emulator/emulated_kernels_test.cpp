// Every kernel of the GPU backends, as C++ on the emulator, against the double-precision reference: with
// every access checked (bounds, races between lanes, an order of lanes and groups drawn at random), and fast.
#include <gtest/gtest.h>

#include <set>
#include <span>

#include "device/tensor_claims.h"
#include "gpu/kernels_checks.h"

namespace gimbal {
namespace {

std::unique_ptr<Device> emulator(const std::string& options) {
  auto opened = open_device({"emulator", 0, true, options});
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(opened->device) : nullptr;
}

class EmulatedKernels : public testing::TestWithParam<const char*> {};

TEST_P(EmulatedKernels, AgreeWithTheReference) { test::check_kernels("emulator", GetParam()); }

constexpr const char* kModes[] = {"Races", "InParts", "SubgroupsOf8", "SubgroupsOf32", "SubgroupsOf64"};
// Races without sub-groups, with small and with the largest ones. 5000 bytes: less than most matrices of the
// cases have. lavapipe has sub-groups of 4, 8 and 16 (vulkan_kernels_test).
INSTANTIATE_TEST_SUITE_P(Emulator, EmulatedKernels,
                         testing::Values("racecheck=1\nseed=7", "bounds=1\npart=5000",
                                         "racecheck=1\nseed=9\nsubgroup=8", "subgroup=32",
                                         "racecheck=1\nsubgroup=64"),
                         [](auto& p) { return std::string(kModes[p.index]); });

TEST(EmulatedMatrixKernels, AgreeWithTheReference) {
  test::check_kernels("emulator", "matrix=1\nracecheck=1\nseed=5\npart=5000", ".gpu_matrix");
}

// What the CPU computes with, the emulator computes too: no op or format that only one of them has.
TEST(EmulatedTable, HasARowForAllThatTheCpuComputes) {
  using Key = std::vector<uint64_t>;
  auto keys = [](const Device& d) {
    std::set<Key> all;
    for (size_t i = 0; i < d.kernel_count(); i++) {
      const gimbal_kernel_info& r = d.kernel(i);
      if (is_tensor_op(OpKind(r.op))) continue;  // of which a GPU has no f64: kernels_test has these rows
      // A row may be for several formats of weights.
      for (DType t : kAllDTypes) {
        const bool any = r.in[0].dtypes == 0;
        if (!any && !(r.in[0].dtypes & set_of(t))) continue;
        Key key = {r.op, r.params, any ? 0 : set_of(t), r.in[0].layout, r.in[0].strided};
        for (const gimbal_operand& in : std::span(r.in).subspan(1))
          key.insert(key.end(), {in.dtypes, in.layout, in.strided});
        for (const gimbal_operand& out : r.out) key.insert(key.end(), {out.dtypes, out.layout, out.strided});
        all.insert(key);
      }
    }
    return all;
  };
  auto cpu = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(cpu);
  auto gpu = emulator("");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(keys(*cpu->device), keys(*gpu));
}

TEST(EmulatedTable, IsOpenedOnlyWhenAskedFor) {
  auto opened = open_device({"auto", 0, false, ""});
  ASSERT_TRUE(opened);
  EXPECT_STREQ(opened->device->backend(), "cpu");
  const auto names = backend_names();
  EXPECT_EQ(names.back(), "emulator");
  EXPECT_TRUE(emulator("")->describe().software);
}

TEST(EmulatedTable, RefusesOptionsThatItDoesNotKnow) {
  for (const char* options : {"colour=red", "bounds=2", "seed=x", "seed=", "part=", "max_binding=-1",
                              "bounds", "subgroup=2", "subgroup=24", "subgroup=128"}) {
    auto opened = open_device({"emulator", 0, true, options});
    ASSERT_FALSE(opened) << options;
    EXPECT_NE(opened.error().message.find(std::string(options).substr(0, 4)), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace gimbal
