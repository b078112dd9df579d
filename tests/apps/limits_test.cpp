// The limits that a device measures: there, positive, and said for what they hold. How large they are is the
// machine's business.
#include <gtest/gtest.h>

#include "base/format.h"
#include "discovery/registry.h"
#include "support/fake_backend.h"

namespace gimbal::test {
namespace {

const gimbal_backend& cpu() {
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (std::string((*e)()->name) == "cpu") return *(*e)();
  ADD_FAILURE() << "this build has no CPU backend";
  return fake_backend();
}

// Instruction sets that the CPU here has, by the names of its kernels. One that has fast rows only adds them
// to another one, and its limits are that one's.
std::vector<std::string> variants(const Device& d) {
  std::vector<std::string> all;
  for (size_t i = 0; i < d.kernel_count(); i++) {
    if (d.kernel(i).numerics != GIMBAL_EXACT) continue;
    const std::string name = d.kernel(i).name, variant = name.substr(4, name.find('.', 4) - 4);
    if (!(d.kernel(i).needs & ~d.describe().features) && (all.empty() || all.back() != variant))
      all.push_back(variant);
  }
  return all;
}

TEST(Limits, EveryInstructionSetHasItsOwn) {
  auto any = Device::open(cpu(), 0);
  ASSERT_TRUE(any) << any.error().message;
  const auto names = variants(**any);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    auto d = Device::open(cpu(), 0, "threads=1\nlimit_megabytes=64\nvariant=" + name + "\n");
    ASSERT_TRUE(d) << d.error().message;
    auto l = (*d)->measure();
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_EQ(l->instruction_set, name);
    EXPECT_EQ(l->threads, 1u);
    // A machine on which these are wrong by a hundred times does not exist: it would be a wrong unit.
    EXPECT_GT(l->read_bytes_per_second, 1e7) << name;
    EXPECT_LT(l->read_bytes_per_second, 1e13) << name;
    EXPECT_GT(l->int8_ops_per_second, 1e6) << name;
    EXPECT_LT(l->int8_ops_per_second, 1e15) << name;
    EXPECT_GT(l->fp32_ops_per_second, 1e6) << name;
    EXPECT_LT(l->fp32_ops_per_second, 1e14) << name;
  }
}

TEST(Limits, TheWholeTeamMeasuresAndCanComputeAfterwards) {
  auto d = Device::open(cpu(), 0, "threads=3\nlimit_megabytes=64\n");
  ASSERT_TRUE(d) << d.error().message;
  for (int i = 0; i < 2; i++) {
    auto l = (*d)->measure();
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_EQ(l->threads, 3u);
    EXPECT_GT(l->read_bytes_per_second, 0);
  }
  EXPECT_TRUE((*d)->allocate(1 << 20));
}

TEST(Limits, TheAmountOfMemoryIsANumber) {
  for (const char* wrong : {"", "0", "-1", "many", "1048577"}) {
    auto d = Device::open(cpu(), 0, std::string("limit_megabytes=") + wrong + "\n");
    ASSERT_FALSE(d) << wrong;
    EXPECT_NE(d.error().message.find("limit_megabytes"), std::string::npos) << d.error().message;
  }
}

TEST(Limits, ABackendNeedNotMeasure) {
  auto d = open_fake({});
  ASSERT_TRUE(d);
  auto l = d->measure();
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, Code::Unsupported);
  EXPECT_NE(l.error().message.find("fake:0"), std::string::npos) << l.error().message;
}

TEST(Limits, ATableThatEndsBeforeTheFunctionIsNotReadBeyondItsEnd) {
  gimbal_backend older = fake_backend();
  older.struct_size = offsetof(gimbal_backend, measure);
  older.measure = [](gimbal_device*, gimbal_limits*) -> gimbal_code {
    ADD_FAILURE() << "called although the table ends before it";
    return GIMBAL_INVALID;
  };
  auto d = Device::open(older, 0);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_FALSE((*d)->measure());
  older.struct_size = offsetof(gimbal_backend, last_error);
  EXPECT_FALSE(Device::open(older, 0)) << "what is not optional is missing";
}

}  // namespace
}  // namespace gimbal::test
