// A queue on the CPU for each test.
#pragma once
#include <gtest/gtest.h>

#include <optional>

#include <gimbal/tensor.h>

namespace gimbal::test {

class OnCpuQueue : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_queue("cpu");
    ASSERT_TRUE(opened) << opened.error().message;
    queue.emplace(std::move(*opened));
  }
  std::optional<Queue> queue;
};

}  // namespace gimbal::test
