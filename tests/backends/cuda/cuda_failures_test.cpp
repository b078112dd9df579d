// What goes wrong with NVIDIA's driver, over a fake of it.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "backends/cuda/vendor.h"
#include "backends/driver_api/fake.h"
#include "gpu/modules.h"
#include "gpu/unpacked.h"

namespace gimbal::gpu {

struct Subject {
  static constexpr const char* kBackend = "cuda";
  static const driver_api::Vendor& vendor() { return cuda::vendor; }
  static const char* symbol(const char* cuda, const char*) { return cuda; }
  static KernelCode kernel(std::string_view name) {
    for (const KernelCode& k : ptx_modules())
      if (k.name == name) return test::unpacked(k);
    return {};
  }
  template <class F>
  static void refuse_more(F because) {
    because("cuInit", 34, {"stub of the CUDA toolkit", "LD_LIBRARY_PATH"});
    because("cuInit", 36, {"older than the library needs", "install a driver"});
    because("cuInit", 803, {"different versions; a restart", "nvidia-smi"});
    because("cuInit", 802, {"nvidia-fabricmanager", "nvidia-smi"});
    because("cuInit", 804, {"cuda-compat", "nvidia-smi"});
    because("cuDriverGetVersion", 34, {"stub of the CUDA toolkit"});
  }
  static constexpr size_t kMoreReasons = 6, kMoreRemedies = 2;
  static constexpr int kErrors = 58, kFunctions = 33;
};

}  // namespace gimbal::gpu

#include "backends/driver_api/failures_tests.h"

namespace gimbal::gpu {
namespace {

TEST(CudaDevices, ThatAreTooOldAreRefused) {
  const FakeControl& control = fake();
  auto opened = [&](int major, int minor) {
    control.reset();
    control.set_capability(major, minor);
    Options o = test::options_of("");
    Opened out;
    Failure f = driver_api::open(cuda::vendor, 0, o, &out);
    if (!f) { EXPECT_FALSE(out.kernels.empty()); }
    return f;
  };
  EXPECT_FALSE(opened(6, 1));
  EXPECT_FALSE(opened(8, 0));
  EXPECT_FALSE(opened(12, 0));
  const Failure f = opened(5, 2);
  EXPECT_EQ(f.code, Failure::Unsupported);
  expect_words(f.text,
               {"compute capability 5.2, and the kernels need ", "\nuse the vulkan or opencl backend"});
}

TEST(CudaDevices, AreReadFromThePtx) {
  EXPECT_EQ(cuda::min_capability(".version 7.0\n.target sm_80\n"), 80);
  EXPECT_EQ(cuda::min_capability(".target sm_100a"), 100);
  EXPECT_EQ(cuda::min_capability(".version 7.0"), 0);
  EXPECT_EQ(cuda::min_capability(".target sm_"), 0);
}

// Our table of numbers against NVIDIA's own, where the toolkit is installed.
TEST(CudaErrors, AreThoseOfTheHeader) {
  std::ifstream file("/usr/local/cuda/include/cuda.h");
  if (!file) GTEST_SKIP() << "there is no /usr/local/cuda/include/cuda.h to compare with";
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  int compared = 0;
  for (const Known& k : kKnown) {
    if (!*k.cuda) continue;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(text, found, std::regex(std::string(k.cuda) + R"(\s*=\s*(\d+))")))
        << k.cuda;
    EXPECT_EQ(std::stoi(found[1]), k.number) << k.cuda;
    compared++;
  }
  EXPECT_GE(compared, 55);
}

}  // namespace
}  // namespace gimbal::gpu
