#include "backends/emulator/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "backends/emulator/checks.h"
#include "backends/emulator/group.h"
#include "base/format.h"
#include "gpu/launch_check.h"

namespace gimbal::emulator {
namespace {

using gpu::Failure;

struct EmulatedBuffer : gpu::Buffer {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  std::vector<Touch> touches;  // one a word, when races are looked for
  ~EmulatedBuffer() { free(data); }
};

struct EmulatedKernel : gpu::Kernel {
  gpu::KernelCode facts;
  const Compiled* compiled = nullptr;
};

struct EmulatedRecording : gpu::Recording {
  std::vector<gpu::Launch> launches;
};

Failure invalid(std::string text) { return {Failure::Invalid, std::move(text)}; }

class Emulator final : public gpu::Runtime {
 public:
  explicit Emulator(const Options& o)
      : options_(o),
        checks_(o.racecheck),
        shuffle_(o.seed),
        runner_(checked() ? &checks_ : nullptr, o.seed ? &shuffle_ : nullptr) {
    facts_.name = "emulated GPU";
    facts_.driver = checked() ? (o.racecheck ? "fibers, race check" : "fibers, bounds check") : "fibers";
    facts_.memory_total =
        o.memory ? o.memory : uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
    facts_.max_binding_bytes = o.max_binding ? o.max_binding : 128u << 20;
    facts_.binding_alignment = 256;  // the coarsest of all APIs, so that nothing works only here
    facts_.software = facts_.unified_memory = true;
    facts_.subgroup_lanes = uint32_t(o.subgroup);
    if (o.subgroup > 1) facts_.driver += format(", sub-groups of {}", o.subgroup);
  }

  const gpu::Facts& facts() override {
    facts_.memory_free = facts_.memory_total - std::min(facts_.memory_total, allocated_);
    return facts_;
  }

  Failure allocate(uint64_t bytes, gpu::Buffer** out) override {
    if (bytes > facts().memory_free)
      return {Failure::OutOfMemory, format("{} bytes requested, {} are free", bytes, facts_.memory_free)};
    auto b = std::make_unique<EmulatedBuffer>();
    b->data =
        static_cast<uint8_t*>(calloc(1, std::max<uint64_t>(bytes, 4)));  // AddressSanitizer sees its ends
    if (!b->data) return {Failure::OutOfMemory, format("the system cannot allocate {} bytes", bytes)};
    b->bytes = bytes;
    if (options_.racecheck) b->touches.resize(bytes / 4);
    allocated_ += bytes;
    *out = b.release();
    return {};
  }
  void release(gpu::Buffer* b) override {
    if (!b) return;
    allocated_ -= buffer(b).bytes;
    delete &buffer(b);
  }

  Failure write(gpu::Buffer* b, uint64_t offset, const void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, bytes_of(b))) return f;
    memcpy(buffer(b).data + offset, data, bytes);
    return {};
  }
  Failure read(gpu::Buffer* b, uint64_t offset, void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, bytes_of(b))) return f;
    memcpy(data, buffer(b).data + offset, bytes);
    return {};
  }

  Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    if (code.code.size() != sizeof(Compiled))
      return invalid(format("kernel {} is not built for the emulator", code.name));
    for (auto& k : kernels_)
      if (k->compiled == reinterpret_cast<const Compiled*>(code.code.data()))
        return *out = k.get(), Failure{};
    auto k = std::make_unique<EmulatedKernel>();
    k->facts = code;
    k->compiled = reinterpret_cast<const Compiled*>(code.code.data());
    *out = kernels_.emplace_back(std::move(k)).get();
    return {};
  }

  Failure record(std::span<const gpu::Launch> launches, gpu::Recording** out) override {
    for (const gpu::Launch& l : launches) {
      if (!l.kernel) return invalid("a launch without a kernel");
      if (Failure f = gpu::check_launch(facts_, static_cast<EmulatedKernel*>(l.kernel)->facts, l, bytes_of))
        return f;
    }
    auto r = std::make_unique<EmulatedRecording>();
    r->launches.assign(launches.begin(), launches.end());
    *out = r.release();
    return {};
  }
  void discard(gpu::Recording* r) override { delete static_cast<EmulatedRecording*>(r); }

  Failure replay(gpu::Recording* r) override {
    Checks::run_on_this_thread(&checks_);
    checks_.all_before_ended();
    for (const gpu::Launch& l : static_cast<EmulatedRecording*>(r)->launches) {
      if (l.after_all) checks_.all_before_ended();
      if (Failure f = run(l)) return f;
    }
    return {};
  }
  Failure wait() override { return {}; }

 private:
  static EmulatedBuffer& buffer(gpu::Buffer* b) { return *static_cast<EmulatedBuffer*>(b); }
  bool checked() const { return options_.bounds || options_.racecheck; }

  static uint64_t bytes_of(gpu::Buffer* b) { return buffer(b).bytes; }

  Failure run(const gpu::Launch& l) {
    const EmulatedKernel& kernel = *static_cast<EmulatedKernel*>(l.kernel);
    if (kernel.facts.name == options_.idle) return {};
    void* data[gpu::kMaxBindings];
    uint64_t words[gpu::kMaxBindings];
    Touch* touches[gpu::kMaxBindings] = {};
    for (uint32_t i = 0; i < kernel.facts.bindings; i++) {
      const gpu::Binding& b = l.binding[i];
      data[i] = buffer(b.buffer).data + b.offset;
      words[i] = b.bytes / 4;
      if (options_.racecheck) touches[i] = buffer(b.buffer).touches.data() + b.offset / 4;
    }
    Lane common = {};
    common.data = data, common.words = words;
    common.params = l.params;
    common.subgroup = facts_.subgroup_lanes;
    common.step = reinterpret_cast<const int32_t*>(buffer(l.step.buffer).data + l.step.offset);
    if (checked()) checks_.begin_launch(kernel.facts.name, touches, kernel.facts.lanes, l.groups);
    const uint64_t n = uint64_t(l.groups[0]) * l.groups[1] * l.groups[2];
    order_.clear();
    if (options_.seed) {
      for (uint64_t i = 0; i < n; i++) order_.push_back(i);
      shuffle_(order_);
    }
    for (uint64_t i = 0; i < n; i++) {
      uint64_t at = options_.seed ? order_[i] : i;
      common.group[0] = uint32_t(at % l.groups[0]);
      common.group[1] = uint32_t(at / l.groups[0] % l.groups[1]);
      common.group[2] = uint32_t(at / l.groups[0] / l.groups[1]);
      std::string wrong = runner_.run(*kernel.compiled, common, kernel.facts.lanes);
      if (!wrong.empty())
        return invalid(format("kernel {}, group ({}, {}, {}): {}", kernel.facts.name, common.group[0],
                              common.group[1], common.group[2], wrong));
      if (!checks_.defect().empty()) return invalid(checks_.defect());
    }
    return {};
  }

  const Options options_;
  gpu::Facts facts_;
  uint64_t allocated_ = 0;
  std::vector<std::unique_ptr<EmulatedKernel>> kernels_;
  std::vector<uint64_t> order_;
  Checks checks_;
  Shuffle shuffle_;
  GroupRunner runner_;
};

}  // namespace

std::unique_ptr<gpu::Runtime> open(const Options& options) { return std::make_unique<Emulator>(options); }

}  // namespace gimbal::emulator
