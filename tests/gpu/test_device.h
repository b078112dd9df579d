// A runtime with some buffers and kernels, for tests: what it takes to launch one kernel and look at the
// result.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "gpu/modules.h"

namespace gimbal::gpu {

class TestDevice {
 public:
  TestDevice(Runtime& runtime, std::span<const KernelCode> kernels) : runtime_(runtime), kernels_(kernels) {
    step_ = buffer(std::vector<int32_t>{1000, 500});
  }
  ~TestDevice() {
    for (Buffer* b : buffers_) runtime_.release(b);
  }

  template <class T>
  Buffer* buffer(const std::vector<T>& values, size_t spare = 0) {
    Buffer* b = nullptr;
    uint64_t bytes = values.size() * sizeof(T);
    Failure f = runtime_.allocate(bytes + spare, &b);
    EXPECT_FALSE(f) << f.text;
    f = runtime_.write(b, 0, values.data(), bytes);
    EXPECT_FALSE(f) << f.text;
    buffers_.push_back(b);
    return b;
  }
  template <class T>
  std::vector<T> contents(Buffer* b, size_t count) {
    std::vector<T> v(count);
    Failure f = runtime_.read(b, 0, v.data(), count * sizeof(T));
    EXPECT_FALSE(f) << f.text;
    return v;
  }
  void set_step(int32_t rows, int32_t out_rows) {
    int32_t v[2] = {rows, out_rows};
    EXPECT_FALSE(runtime_.write(step_, 0, v, 8));
  }

  template <class P>
  Launch launch(std::string_view kernel, std::vector<Binding> bindings, const P& params, uint32_t groups) {
    Launch l;
    for (const KernelCode& k : kernels_)
      if (k.name == kernel) {
        EXPECT_EQ(k.bindings, bindings.size());
        EXPECT_EQ(k.param_bytes, sizeof(P));
        Failure f = runtime_.load(k, &l.kernel);
        EXPECT_FALSE(f) << f.text;
      }
    EXPECT_NE(l.kernel, nullptr) << kernel;
    std::copy(bindings.begin(), bindings.end(), l.binding);
    l.step = {step_, 0, 8};
    memcpy(l.params, &params, sizeof params);
    l.groups[0] = groups;
    return l;
  }
  Failure run(const std::vector<Launch>& launches) {
    Recording* r = nullptr;
    if (Failure f = runtime_.record(launches, &r)) return f;
    Failure f = runtime_.replay(r);
    if (!f) f = runtime_.wait();
    runtime_.discard(r);
    return f;
  }

 private:
  Runtime& runtime_;
  std::span<const KernelCode> kernels_;
  std::vector<Buffer*> buffers_;
  Buffer* step_ = nullptr;
};

}  // namespace gimbal::gpu
