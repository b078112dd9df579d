// A custom op with a function for the CPU alone, called with tensors of a device that is none.
#include <gtest/gtest.h>

#include <gimbal/custom_op.h>

#define TESTED_BACKEND "emulator"

namespace gimbal::test {
namespace {

CustomOp twice() {
  CustomOp op;
  op.name = "twice";
  op.cpu = [](std::span<const HostView> in, const HostTarget& out, Part) -> Status {
    for (int64_t i = 0; i < out.count(); i++) out.at<float>(i) = 2 * in[0].at<float>(i);
    return Done{};
  };
  return op;
}

class EmulatedCustomOps : public testing::Test {
 protected:
  void SetUp() override { open({}); }
  void open(QueueOptions o) {
    o.allow_software_devices = true;
    auto opened = open_queue(TESTED_BACKEND, o);
    ASSERT_TRUE(opened) << opened.error().message;
    queue.emplace(std::move(*opened));
  }
  std::optional<Queue> queue;
};

TEST_F(EmulatedCustomOps, WithoutAFallbackAreRefused) {
  const auto op = custom_op(twice());
  ASSERT_TRUE(op) << op.error().message;
  const Tensor y = (*op)({Tensor::from<float>({1, -2, 3.5f}, {3}, *queue)});
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().reason, "no-kernel");
  EXPECT_NE(y.error().message.find("no implementation of 'twice' for emulator:0"), std::string::npos)
      << y.error().message;
  EXPECT_NE(y.error().remedy.find("fallback"), std::string::npos) << y.error().remedy;
}

TEST_F(EmulatedCustomOps, FallBackToTheCpuAndReturnToTheirDevice) {
  CustomOp with_fallback = twice();
  with_fallback.fallback = "cpu";
  const auto op = custom_op(with_fallback);
  ASSERT_TRUE(op) << op.error().message;
  for (const float x : {3.5f, -4.0f}) {  // the queue on the CPU is opened once
    const Tensor y = (*op)({Tensor::from<float>({1, -2, x}, {3}, *queue)});
    ASSERT_TRUE(y.ok()) << y.error().message;
    EXPECT_EQ(y.queue().name(), queue->name());
    EXPECT_EQ(*y.values<float>(), (std::vector<float>{2, -4, 2 * x}));
    EXPECT_EQ(*(y + 1).values<float>(), (std::vector<float>{3, -3, 2 * x + 1}));
  }
  const auto listed = queue->fallbacks();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].what, "custom op 'twice'");
  EXPECT_EQ(listed[0].instead, "cpu:0");
  EXPECT_EQ(listed[0].why.reason, "no-kernel");
}

TEST_F(EmulatedCustomOps, StayOnAStrictQueue) {
  open({.strict = true});
  CustomOp with_fallback = twice();
  with_fallback.fallback = "cpu";
  const auto op = custom_op(with_fallback);
  ASSERT_TRUE(op) << op.error().message;
  const Tensor y = (*op)({Tensor::from<float>({1, -2}, {2}, *queue)});
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().reason, "no-kernel");
  EXPECT_TRUE(queue->fallbacks().empty());
}

}  // namespace
}  // namespace gimbal::test
