// The fake driver of the backend under test, opened beside the code that opens it: its script and its log.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "backends/fake_driver/control.h"
#include "gpu/driver_api/runtime.h"

namespace gimbal::test {

// Variants: "whole", "no_graphs", "old" (a function is missing), "empty" (all are).
inline std::string fake_library(const std::string& variant = "whole") {
  return std::string(FAKE_DRIVERS) + "/" + variant + "/" + FAKE_FILE;
}

// Reset: one device, nothing fails.
inline const FakeControl& fake(const std::string& variant = "whole") {
  void* library = dlopen(fake_library(variant).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  const FakeControl* control = reinterpret_cast<FakeEntry>(dlsym(library, "fake_driver"))();
  control->reset();
  return *control;
}

// The options, with the fake as the library.
inline gpu::Options options_of(const std::string& lines, const std::string& variant = "whole") {
  gpu::Options o;
  EXPECT_FALSE(gpu::Options::parse(
      ("library=" + fake_library(variant) + (lines.empty() ? "" : "\n" + lines)).c_str(), &o));
  return o;
}

inline gpu::Failure open_fake(const gpu::driver_api::Vendor& vendor, std::unique_ptr<gpu::Runtime>* out,
                              const std::string& lines = "", const std::string& variant = "whole",
                              int index = 0) {
  gpu::Options options = options_of(lines, variant);
  gpu::driver_api::Gpu gpu;
  gpu::Failure f = gpu::driver_api::open_runtime(vendor, index, options, &gpu, out);
  EXPECT_FALSE(options.unknown());
  return f;
}

inline void expect_words(const std::string& text, std::initializer_list<std::string> words) {
  for (const std::string& w : words)
    EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' is not in: " << text;
}

}  // namespace gimbal::test
