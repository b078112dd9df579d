// Planning words no reasons: its own executable, because it replaces operator new to count what is made.
#include <gtest/gtest.h>

#include <type_traits>

#include "device/backends.h"
#include "files/gguf.h"
#include "program/place.h"
#include "runtime/model_plan.h"
#include "support/operator_new.h"

static size_t allocations = 0;
static void allocating(size_t) { allocations++; }

namespace gimbal {
namespace {

// Hundreds of kernels refuse each op of a model, and a plan needs no reasons.
TEST(PlaceTheEmbeddedModel, PutsNothingIntoWords) {
  auto device = Device::open(*linked_backends()[0](), 0);
  ASSERT_TRUE(device) << device.error().message;
  auto file = open_gguf(std::string(GIMBAL_SOURCE_DIR) + "/assets/stories260K.gguf");
  ASSERT_TRUE(file) << file.error().message;
  auto b = make_model_plan(*file, **device, {});
  ASSERT_TRUE(b) << b.error().message;
  Program& program = b->stages[0].buckets.back().program;
  ASSERT_GT(program.ops.size(), 50u);
  static_assert(std::is_trivially_copyable_v<Choice>, "a choice holds no words");
  allocations = 0;
  (void)(*device)->describe();  // what the backend allocates to answer
  const size_t describing = allocations;
  allocations = 0;
  auto choices = assign_kernels(program, **device, {});
  const size_t made = allocations;
  ASSERT_TRUE(choices);
  EXPECT_LE(made, describing + 1) << "the choices themselves, and nothing for an op or a kernel";
  size_t worded = 0;
  for (const gimbal_op& op : program.ops) worded += rejections(program, op, **device, {}).size();
  EXPECT_GT(worded, program.ops.size()) << "and there would have been so many reasons to word";
}

}  // namespace
}  // namespace gimbal
