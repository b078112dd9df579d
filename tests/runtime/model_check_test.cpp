// The trial of a model: passes where all is well, and finds a device that computes a lone token or a whole
// prompt differently, or another result than the CPU.
#include "runtime/model_check.h"

#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

// The CPU backend with one fault: after a step of as many rows, one logit has another last bit, or more.
struct Faulty {
  const gimbal_backend* real = nullptr;
  gimbal_backend table{};
  int32_t least = 0, most = 0;  // rows of the steps that come out wrong
  float factor = 1;
};
Faulty& faulty() {
  static Faulty f = [] {
    Faulty f;
    for (LinkedBackends e = linked_backends(); *e; ++e)
      if (std::string((*e)()->name) == "cpu") f.real = (*e)();
    f.table = *f.real;
    f.table.submit = [](gimbal_device* d, gimbal_executable* e, gimbal_buffer* const* slots, size_t n,
                        gimbal_step step) {
      const gimbal_code code = faulty().real->submit(d, e, slots, n, step);
      if (code != GIMBAL_OK || step.rows < faulty().least || step.rows > faulty().most) return code;
      gimbal_buffer* output = slots[size_t(Slot::Output)];
      float logit = 0;
      faulty().real->read(d, output, 0, &logit, sizeof logit);
      logit *= faulty().factor;
      return faulty().real->write(d, output, 0, &logit, sizeof logit);
    };
    return f;
  }();
  return f;
}

struct Tried {
  std::unique_ptr<ModelSource> file;
  std::unique_ptr<Device> device, cpu;
  std::unique_ptr<Model> model;
};

Tried open(int32_t least, int32_t most, float factor) {
  faulty().least = least, faulty().most = most, faulty().factor = factor;
  Tried t;
  auto file = open_gguf(golden_dir() + "/stories/stories260K-q8_0.gguf");
  EXPECT_TRUE(file) << file.error().message;
  t.file = std::make_unique<ModelSource>(std::move(*file));
  t.device = *Device::open(faulty().table, 0, "threads=1");
  t.cpu = *Device::open(*faulty().real, 0, "threads=1");
  RunOptions o;
  o.context = 64;
  auto plan = make_model_plan(*t.file, *t.device, o);
  EXPECT_TRUE(plan) << plan.error().message;
  auto model = Model::load(std::move(*plan), *t.file);
  EXPECT_TRUE(model) << model.error().message;
  t.model = std::move(*model);
  return t;
}

TEST(ModelCheck, ARightDevicePasses) {
  Tried t = open(0, -1, 1);
  auto splits = check_splits(*t.model);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_TRUE(splits->passed()) << splits->wrong;
  EXPECT_TRUE(splits->equal);
  EXPECT_EQ(splits->worst, 0);
  EXPECT_GE(splits->tokens, 20);
  auto layers = check_first_layers(*t.file, *t.device, *t.cpu, t.model->plan().options);
  ASSERT_TRUE(layers) << layers.error().message;
  EXPECT_TRUE(layers->passed()) << layers->wrong;
  EXPECT_TRUE(layers->equal);
}

TEST(ModelCheck, ALoneTokenThatComesOutDifferentlyIsFound) {
  const float one_bit = 1 + 1.2e-7f;
  Tried t = open(1, 1, one_bit);
  auto check = check_splits(*t.model);
  ASSERT_TRUE(check);
  EXPECT_FALSE(check->passed());
  EXPECT_FALSE(check->equal);
  EXPECT_NE(check->wrong.find("one by one"), std::string::npos) << check->wrong;
}

TEST(ModelCheck, APromptThatComesOutDifferentlyIsFound) {
  Tried t = open(20, 1000, 1.5f);
  auto check = check_splits(*t.model);
  ASSERT_TRUE(check);
  EXPECT_NE(check->wrong.find("two batches"), std::string::npos) << check->wrong;
  EXPECT_GT(check->worst, 1e-3);
}

TEST(ModelCheck, AnotherResultThanTheCpusIsFound) {
  Tried t = open(0, 1000, 1.5f);
  auto check = check_first_layers(*t.file, *t.device, *t.cpu, t.model->plan().options);
  ASSERT_TRUE(check) << check.error().message;
  EXPECT_FALSE(check->passed());
  EXPECT_NE(check->wrong.find("cpu:0"), std::string::npos) << check->wrong;
  faulty().factor = 1 + 1e-6f;  // within what roots may round differently
  check = check_first_layers(*t.file, *t.device, *t.cpu, t.model->plan().options);
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->passed()) << check->wrong;
  EXPECT_FALSE(check->equal);
}

TEST(ModelCheck, WhatIsNotANumberIsFound) {
  Tried t = open(0, 1000, NAN);
  // Alone, a model cannot tell damaged weights from a device that computes no numbers: neither is a
  // difference.
  auto splits = check_splits(*t.model);
  ASSERT_FALSE(splits) << "the same everywhere, but no logit";
  EXPECT_EQ(splits.error().code, Code::Malformed);
  // Beside the CPU, which computes numbers here, it is the device.
  auto check = check_first_layers(*t.file, *t.device, *t.cpu, t.model->plan().options);
  ASSERT_TRUE(check);
  EXPECT_FALSE(check->passed());
}

}  // namespace
}  // namespace gimbal::test
