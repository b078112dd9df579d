// What the engine of the GPU backends does over the emulator: its counts (gpu/counts_checks.h), and failures
// with a reason.
#include <gtest/gtest.h>

#include "backends/emulator/watched_emulator.h"
#include "gpu/counts_checks.h"

namespace gimbal::test {
namespace {

TEST_F(EngineCounts, NamesItsDriver) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  const gimbal_device_info i = l->device->describe();
  EXPECT_STREQ(i.driver, "fibers");
  EXPECT_EQ(i.pci_id, nullptr);
  EXPECT_EQ(i.compute_capability, nullptr);
}

TEST_F(EngineCounts, SaysWhatIsTooLargeToBind) {
  auto l = load("max_binding=100000", 20000);
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, Code::Unsupported) << l.error().message;
  EXPECT_NE(l.error().message.find("the device allows 100000"), std::string::npos) << l.error().message;
  EXPECT_NE(l.error().message.find("'context'"), std::string::npos) << l.error().message;
}

TEST_F(EngineCounts, LacksMemoryInWords) {
  auto l = load("memory=300000");
  ASSERT_FALSE(l);
  EXPECT_EQ(l.error().code, Code::OutOfMemory) << l.error().message;
}

TEST_F(EngineCounts, PassesOnThatADeviceIsLost) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  watching->fail = true;
  const int32_t token = 5;
  auto ok = session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, Code::DeviceLost);
  EXPECT_NE(ok.error().message.find("it fell off the bus"), std::string::npos) << ok.error().message;
}

// What percentages are given of: a device has all limits, with and without matrix units.
TEST(EmulatedLimits, AreMeasured) {
  for (const char* options : {"memory=67108864", "memory=67108864\nmatrix=1"}) {
    auto opened = open_device({"emulator", 0, true, options});
    ASSERT_TRUE(opened) << opened.error().message;
    const auto limits = opened->device->measure();
    ASSERT_TRUE(limits) << limits.error().message;
    EXPECT_GT(limits->read_bytes_per_second, 0);
    EXPECT_GT(limits->int8_ops_per_second, 0);
    EXPECT_GT(limits->fp32_ops_per_second, 0);
    EXPECT_STRNE(limits->instruction_set, "");
    EXPECT_EQ(limits->threads, 0u);
  }
}

}  // namespace
}  // namespace gimbal::test
