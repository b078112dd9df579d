// Pages of a KV cache have one layout on the CPU and on GPUs; a backend with another one is found by trying.
#include "program/cache_layout.h"

#include <gtest/gtest.h>

#include "support/fake_plugins.h"
#include "support/placed.h"

namespace gimbal {
namespace {

struct Form {
  DType type;
  int head_dim, heads;
};

const Form kForms[] = {{DType::F32, 8, 2},   {DType::F32, 24, 1},   {DType::F16, 64, 2},
                       {DType::F16, 40, 3},  {DType::BF16, 16, 1},  {DType::Q8_0, 64, 2},
                       {DType::Q8_0, 32, 1}, {DType::Q4_0, 96, 2},  {DType::Q5_0, 64, 2},
                       {DType::Q4_1, 96, 1}, {DType::IQ4_NL, 32, 3}};

void expect_shared(const Device& device) {
  for (const Form& f : kForms)
    for (const bool is_key : {true, false}) {
      const Status ok = check_cache_layout(device, f.type, is_key, f.head_dim, f.heads);
      EXPECT_TRUE(ok) << info(f.type).name << " " << f.head_dim << " x " << f.heads << ": "
                      << ok.error().message;
    }
}

TEST(CacheLayout, IsSharedByTheCpuAndTheGpus) {
  expect_shared(*test::open_one("cpu", 0, "threads=1"));
  expect_shared(*test::open_one("emulator"));
}

TEST(CacheLayout, AnotherOneIsFound) {
  auto library = Library::open(test::toy_plugin());
  ASSERT_TRUE(library) << library.error().message;
  auto opened = Device::open(*library, 0);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto toy = std::move(*opened);
  const Status size = check_cache_layout(*toy, DType::F16, true, 64, 2);
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, Code::Unsupported);
  EXPECT_NE(size.error().message.find("keeps keys of f16 in pages of another size"), std::string::npos)
      << size.error().message;
  // The order of f32 could be the shared one or not: toy has no exact kernels, whose bits others could use.
  EXPECT_FALSE(check_cache_layout(*toy, DType::F32, false, 16, 2));
}

}  // namespace
}  // namespace gimbal
