// A GPU's runtime with a counter on every call: what the engine of the GPU backends asks of it. A test of a
// backend derives from CountsTest<Api>, where Api opens the runtime: `static gpu::Failure open(gpu::Options&,
// gpu::Opened*)`.
#pragma once
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "device/backend_impl.h"
#include "files/gguf.h"
#include "gpu/device.h"
#include "runtime/session.h"
#include "support/golden.h"

namespace gimbal::test {

// Hands everything on to the real runtime, and keeps the counts and the latest recording.
class Watching final : public gpu::Runtime {
 public:
  explicit Watching(std::unique_ptr<gpu::Runtime> real) : real_(std::move(real)) {}
  const gpu::Facts& facts() override { return real_->facts(); }
  gpu::Failure allocate(uint64_t n, gpu::Buffer** out) override {
    largest = std::max(largest, n);
    return allocations++, real_->allocate(n, out);
  }
  void release(gpu::Buffer* b) override { releases++, real_->release(b); }
  gpu::Failure write(gpu::Buffer* b, uint64_t o, const void* p, uint64_t n) override {
    return writes++, real_->write(b, o, p, n);
  }
  gpu::Failure read(gpu::Buffer* b, uint64_t o, void* p, uint64_t n) override {
    return reads++, timed([&] { return real_->read(b, o, p, n); });
  }
  gpu::Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    return loads++, real_->load(code, out);
  }
  gpu::Failure record(std::span<const gpu::Launch> l, gpu::Recording** out) override {
    launches.assign(l.begin(), l.end());
    return records++, real_->record(l, out);
  }
  void discard(gpu::Recording* r) override { discards++, real_->discard(r); }
  gpu::Failure replay(gpu::Recording* r) override {
    return fail ? gpu::Failure{gpu::Failure::DeviceLost, "it fell off the bus"} : real_->replay(r);
  }
  gpu::Failure wait() override {
    return timed([&] { return real_->wait(); });
  }

  int allocations = 0, releases = 0, writes = 0, reads = 0, loads = 0, records = 0, discards = 0;
  bool fail = false;
  uint64_t largest = 0;  // bytes of one allocation
  std::vector<gpu::Launch> launches;
  double waited = 0, busy = 0;  // seconds in read() and wait(), and how many of them this thread computed

 private:
  static double of_this_thread() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
  template <class Call>
  gpu::Failure timed(Call call) {
    const double begin = now(), computed = of_this_thread();
    gpu::Failure f = call();
    waited += now() - begin, busy += of_this_thread() - computed;
    return f;
  }

  std::unique_ptr<gpu::Runtime> real_;
};

template <class Api>
class CountsTest : public testing::Test {
 protected:
  struct Loaded {
    std::unique_ptr<ModelSource> file;
    std::unique_ptr<Device> device;
    std::unique_ptr<Model> model;
  };
  static Result<Loaded> load(const std::string& options = "", int context = 200) {
    static const gimbal_backend table = watched_table();
    Loaded l;
    auto file = open_gguf(golden_dir() + "/stories/stories260K-q8_0.gguf");
    if (!file) return file.error();
    l.file = std::make_unique<ModelSource>(std::move(*file));
    auto device = Device::open(table, 0, options);
    if (!device) return device.error();
    l.device = std::move(*device);
    RunOptions o;
    o.context = context, o.batch = 32, o.logit_rows = 4;
    auto b = make_model_plan(*l.file, *l.device, o);
    if (!b) return b.error();
    auto model = Model::load(std::move(*b), *l.file);
    if (!model) return model.error();
    l.model = std::move(*model);
    return l;
  }

  // Of the device opened last: its runtime, and the engine over it.
  inline static Watching* watching = nullptr;
  inline static gpu::Device* engine = nullptr;
  inline static const Session::Sink kIgnore = [](size_t, std::span<const float>) {};

 private:
  struct Watched {
    static constexpr const char* kName = "watched";
    static int count() { return 1; }
    static gpu::Failure open(int, gpu::Options& options, gpu::Opened* out) {
      gpu::Opened real;
      if (auto f = Api::open(options, &real)) return f;
      auto w = std::make_unique<Watching>(std::move(real.runtime));
      watching = w.get();
      *out = {std::move(w), real.kernels};
      return {};
    }
  };
  static gimbal_backend watched_table() {
    static const gimbal_backend real = BackendTable<gpu::DeviceOf<Watched>>::make("watched");
    gimbal_backend table = real;
    table.open = [](int i, const char* options, gimbal_device** out) {
      const gimbal_code code = real.open(i, options, out);
      if (code == GIMBAL_OK) engine = reinterpret_cast<gpu::DeviceOf<Watched>*>(*out);
      return code;
    };
    return table;
  }
};

}  // namespace gimbal::test
