// What goes wrong with AMD's driver, over a fake of it.
#include <algorithm>
#include <set>

#include "backends/driver_api/fake.h"
#include "backends/rocm/vendor.h"
#include "gpu/modules.h"
#include "gpu/unpacked.h"

namespace gimbal::gpu {

struct Subject {
  static constexpr const char* kBackend = "rocm";
  static const driver_api::Vendor& vendor() { return rocm::vendor; }
  static const char* symbol(const char*, const char* hip) { return hip; }
  static KernelCode kernel(std::string_view name) {
    for (const KernelCode& k : amdgcn_modules("gfx90a"))
      if (k.name == name) return test::unpacked(k);
    return {};
  }
  template <class F>
  static void refuse_more(F because) {
    because("hipInit", 101, {"is installed, but sees no device", "hipErrorInvalidDevice", "/dev/kfd"});
    because("hipInit", 35, {"older than the library needs", "install ROCm"});
  }
  static constexpr size_t kMoreReasons = 2, kMoreRemedies = 1;
  static constexpr int kErrors = 37, kFunctions = 32;
};

}  // namespace gimbal::gpu

#include "backends/driver_api/failures_tests.h"

namespace gimbal::gpu {
namespace {

TEST(RocmDevices, GetTheCodeOfTheirArchitecture) {
  const FakeControl& control = fake();
  auto opened = [&](const char* architecture, Opened* out) {
    control.reset();
    control.set_architecture(architecture);
    Options o = test::options_of("");
    return driver_api::open(rocm::vendor, 0, o, out);
  };
  // The fake refuses a code object of another architecture than its own.
  for (const char* a :
       {"gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack-", "gfx1030", "gfx1100", "gfx1201"}) {
    Opened out;
    const Failure f = opened(a, &out);
    ASSERT_FALSE(f) << f.text;
    Kernel* k = nullptr;
    for (const KernelCode& code : out.kernels)
      ASSERT_FALSE(out.runtime->load(test::unpacked(code), &k)) << a << " " << code.name;
    EXPECT_EQ(control.calls("hipModuleLoadDataEx"), 1);
    const std::string_view name(a);
    control.set_architecture(name == "gfx1030" ? "gfx1100" : "gfx1030");
    Opened other;
    Options o = test::options_of("");
    ASSERT_FALSE(driver_api::open(rocm::vendor, 0, o, &other));
    EXPECT_EQ(other.runtime->load(test::unpacked(out.kernels[0]), &k).code, Failure::Unsupported)
        << "the fake takes any code object";
  }
  for (const char* a : {"gfx906:sramecc+:xnack-", "gfx1031", "gfx9", ""}) {
    Opened out;
    const Failure f = opened(a, &out);
    EXPECT_EQ(f.code, Failure::Unsupported) << a;
    const std::string name(a, std::min(strcspn(a, ":"), strlen(a)));
    expect_words(f.text,
                 {name.empty() ? "does not name" : " is " + name + ",",
                  "has kernels for gfx90a, gfx942, gfx1030, gfx1100, gfx1201",
                  "\nbuild gimbal with -DGIMBAL_AMD_ARCHITECTURES=" + (name.empty() ? "gfx..." : name)});
  }
}

// Libraries before ROCm 6 have only the older function, with the name elsewhere.
TEST(RocmDevices, AreNamedByOldLibrariesToo) {
  fake();
  driver_api::Driver d;
  ASSERT_FALSE(open_driver(rocm::vendor, fake_library(), &d));
  d.functions.device_properties.call = nullptr;
  driver_api::Gpu gpu;
  ASSERT_FALSE(examine(d, 0, &gpu));
  EXPECT_EQ(gpu.architecture, "gfx90a");
}

}  // namespace
}  // namespace gimbal::gpu
