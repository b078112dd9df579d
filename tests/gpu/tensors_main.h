// main() of a test of tensors that needs a device, as device_main.h, whose headers have other names for the
// same things.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>

#include <gimbal/tensor.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gimbal::QueueOptions o;
  o.allow_software_devices = true;
  auto q = gimbal::open_queue(TESTED_BACKEND, o);
  if (!q) {
    // Anything but an absent device or package is a defect.
    const std::string& why = q.error().message;
    const bool absent =
        why.find("no device found") != why.npos || why.find("install the package") != why.npos;
    std::printf("%s: %s\n", absent ? "skipped" : "failed", why.c_str());
    return absent ? 77 : 1;
  }
  std::printf("%s: %s\n", TESTED_BACKEND, q->name().c_str());
  return RUN_ALL_TESTS();
}
