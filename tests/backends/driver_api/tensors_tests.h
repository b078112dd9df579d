// The checks of tensors over a fake driver, whose launches run the same texts through the emulator. Included
// by a test of each vendor, which defines TESTED_BACKEND and TESTED_OPTIONS.
#pragma once
#include <dlfcn.h>

#include "backends/fake_driver/control.h"
#include "gpu/blocks_checks.h"
#include "gpu/tensors_main.h"

namespace gimbal::test {
namespace {

// An order of the launches that only the recordings restrain; and what ran, ran through the driver.
class OverAFake : public testing::Environment {
 public:
  void SetUp() override {
    void* library =
        dlopen((std::string(FAKE_DRIVERS) + "/whole/" + FAKE_FILE).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    control_ = reinterpret_cast<FakeEntry>(dlsym(library, "fake_driver"))();
    std::printf("%s\n", control_->says);
    control_->set_seed(3);
  }
  void TearDown() override {
    if (!control_) return;
    std::printf("%d launches\n", control_->launches());
    EXPECT_GT(control_->launches(), 1000);
    EXPECT_EQ(control_->allocated(), 0u);
  }

 private:
  const FakeControl* control_ = nullptr;
};
[[maybe_unused]] testing::Environment* const over_a_fake = testing::AddGlobalTestEnvironment(new OverAFake);

}  // namespace
}  // namespace gimbal::test
