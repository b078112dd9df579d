// main() of a test that needs a device of one backend: where there is none, it says why and exits with 77,
// which ctest counts as skipped. Include it once, behind #define TESTED_BACKEND "vulkan".
// GIMBAL_TEST_OPTIONS: options for every device that the test opens. GIMBAL_TEST_ENTRY: the name of the ctest
// entry, when one executable is run by several.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "discovery/registry.h"

namespace gimbal::test {
inline std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}
// Of the environment, and `more`.
inline std::string device_options(const std::string& more = "") {
  const std::string all = from_environment("GIMBAL_TEST_OPTIONS");
  return all.empty() || more.empty() ? all + more : all + "\n" + more;
}
}  // namespace gimbal::test

int main(int argc, char** argv) {
  const std::string entry = gimbal::test::from_environment("GIMBAL_TEST_ENTRY");
  if (std::string& output = testing::GTEST_FLAG(output);
      !entry.empty() && output.size() > 1 && output.back() == '/')
    output += entry + ".xml";  // several entries of one executable: a report each
  testing::InitGoogleTest(&argc, argv);
  auto opened = gimbal::open_device({TESTED_BACKEND, 0, true, gimbal::test::device_options()});
  if (!opened) {
    // Anything but an absent device or package is a defect.
    const std::string& why = opened.error().message;
    const bool absent =
        why.find("no device found") != why.npos || why.find("install the package") != why.npos;
    std::printf("%s: %s\n", absent ? "skipped" : "failed", why.c_str());
    return absent ? 77 : 1;
  }
  std::printf("%s device 0: %s\n", TESTED_BACKEND, opened->device->describe().name);
  return RUN_ALL_TESTS();
}
