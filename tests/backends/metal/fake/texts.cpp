// The texts of metal_runtime_test: the pretended Metal knows them before the first test.
#include <gtest/gtest.h>

#include "backends/metal/fake/control.h"

namespace gimbal::test {
std::span<const CompiledText> example_texts();
std::span<const CompiledText> rounding_texts();
namespace {

struct KnowTexts : testing::Environment {
  void SetUp() override { know_texts(example_texts()), know_texts(rounding_texts()); }
};
[[maybe_unused]] testing::Environment* const known = testing::AddGlobalTestEnvironment(new KnowTexts);

}  // namespace
}  // namespace gimbal::test
