// The backend that others are copied from: every row right, and a model that tells what the cpu tells.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/conformance.h"
#include "support/engine.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

std::unique_ptr<Device> open_toy(const std::string& options = "") {
  auto library = Library::open(test::toy_plugin());
  EXPECT_TRUE(library) << library.error().message;
  if (!library) return nullptr;
  auto device = Device::open(*library, 0, options);
  if (!device) ADD_FAILURE() << device.error().message;
  return device ? std::move(*device) : nullptr;
}

TEST(Toy, EveryRowGivesTheRightNumbers) {
  auto device = open_toy();
  ASSERT_NE(device, nullptr);
  ASSERT_GT(device->kernel_count(), 10u);
  int cases = 0;
  for (size_t i = 0; i < device->kernel_count(); i++) {
    auto report = check_kernel(*device, i);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->failed, 0) << (report->failures.empty() ? "" : report->failures[0]);
    EXPECT_GT(report->cases, 0) << device->kernel(i).name << ": " << report->not_run;
    EXPECT_LE(report->worst, 1) << device->kernel(i).name;
    cases += report->cases;
  }
  printf("%zu rows, %d cases\n", device->kernel_count(), cases);
}

TEST(Toy, AModelSpeaksAsOnTheCpu) {
  const std::string path = std::string(GIMBAL_SOURCE_DIR) + "/assets/stories260K.gguf";
  const std::vector<int32_t> tokens = {1, 403, 407, 261, 378, 400, 11, 17};
  test::EngineOptions options;
  options.run.context = 64, options.run.logit_rows = 8, options.run.cache_type = DType::F32;
  auto cpu = test::open_engine(path, options);
  ASSERT_TRUE(cpu) << cpu.error().message;

  test::Engine toy;
  toy.device = open_toy();
  ASSERT_NE(toy.device, nullptr);
  options.run.kernels.allow_fast = true;
  auto plan = make_model_plan(*cpu->file, *toy.device, options.run);
  ASSERT_TRUE(plan) << plan.error().message;
  auto model = Model::load(std::move(*plan), *cpu->file);
  ASSERT_TRUE(model) << model.error().message;
  toy.model = std::move(*model);

  const std::vector<float> want = cpu->all_logits(tokens), got = toy.all_logits(tokens);
  ASSERT_EQ(got.size(), want.size());
  ASSERT_GT(got.size(), 8u * 500);
  float worst = 0;
  for (size_t i = 0; i < got.size(); i++) worst = std::max(worst, std::abs(got[i] - want[i]));
  EXPECT_LT(worst, 1e-4f) << "of logits of about 10: what f32 sums differ by from sums in double";
  EXPECT_EQ(toy.all_logits(tokens, 3), got) << "no number depends on how the prompt is cut";
}

TEST(Toy, IsOneDevice) {
  auto library = Library::open(test::toy_plugin());
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ((*library)->table().device_count(), 1);
  EXPECT_TRUE(Device::open(*library, 0));
}

TEST(Toy, KnowsNoOptionsAndCountsItsWork) {
  auto library = Library::open(test::toy_plugin());
  ASSERT_TRUE(library);
  auto refused = Device::open(*library, 0, "threads=2");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no options"), std::string::npos) << refused.error().message;
  EXPECT_FALSE((*Device::open(*library, 0))->allocate(SIZE_MAX));

  auto device = open_toy();
  auto program = device->compile({});
  ASSERT_TRUE(program);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(device->submit(*program, nullptr, 0, {1, 1}));
  auto counts = device->run_counts(*program, 2);
  ASSERT_TRUE(counts);
  EXPECT_EQ(*counts, (std::vector<uint64_t>{3, 3}));
}

}  // namespace
}  // namespace gimbal
