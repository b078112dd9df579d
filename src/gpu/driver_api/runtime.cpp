#include "gpu/driver_api/runtime.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "gpu/driver_api/recording.h"
#include "gpu/launch_check.h"

namespace gimbal::gpu::driver_api {
namespace {

DriverBuffer& buffer(Buffer* b) { return *static_cast<DriverBuffer*>(b); }

class DriverRuntime final : public Runtime {
 public:
  DriverRuntime(Driver driver, const Gpu& gpu, std::string compiler)
      : session_(std::move(driver), gpu), gpu_(gpu), compiler_(std::move(compiler)) {
    facts_.name = gpu.name, facts_.driver = gpu.driver;
    facts_.pci_id = gpu.address;
    facts_.compute_capability =
        gpu.architecture.empty() && gpu.major ? format("{}.{}", gpu.major, gpu.minor) : gpu.architecture;
    facts_.memory_total = facts_.memory_free = gpu.memory;
    // Kernels count words in 32 bits; nothing smaller limits a pointer.
    facts_.max_binding_bytes = uint64_t(4) << 30;
    facts_.unified_memory = gpu.unified;
  }
  ~DriverRuntime() override {
    if (session_.use()) return;
    for (auto& [image, module] : modules_) session_.undo(f_.unload_module, module);
  }

  Failure start() { return session_.start(); }

  const Facts& facts() override {
    size_t free = 0, total = 0;
    if (!session_.use() && !session_.call(f_.memory_info, "querying its memory", &free, &total))
      facts_.memory_free = free;
    return facts_;
  }

  Failure allocate(uint64_t bytes, Buffer** out) override {
    if (Failure e = session_.use()) return e;
    auto b = std::make_unique<DriverBuffer>();
    b->bytes = bytes;
    const size_t taken = std::max<uint64_t>(bytes, 4);
    if (Failure e = session_.call(f_.allocate, "allocating memory", &b->at, taken)) {
      if (e.code == Failure::OutOfMemory)
        e.text += format("; {} bytes were requested, {} of {} are free", bytes, facts().memory_free,
                         facts_.memory_total);
      return e;
    }
    Failure e = session_.call(f_.fill, "clearing memory", b->at, static_cast<unsigned char>(0), taken,
                              session_.stream());
    if (!e) e = wait();
    if (e) return session_.undo(f_.release, b->at), e;
    *out = b.release();
    return {};
  }
  void release(Buffer* b) override {
    if (!b) return;
    if (!session_.use()) session_.undo(f_.release, buffer(b).at);
    delete &buffer(b);
  }

  Failure write(Buffer* b, uint64_t offset, const void* data, uint64_t bytes) override {
    if (Failure e = inside(b, offset, bytes)) return e;
    if (Failure e = session_.use()) return e;
    if (Failure e = session_.call(f_.upload, "writing to the device", buffer(b).at + offset, data,
                                  size_t(bytes), session_.stream()))
      return e;
    return wait_for("writing to the device");
  }
  Failure read(Buffer* b, uint64_t offset, void* data, uint64_t bytes) override {
    if (Failure e = inside(b, offset, bytes)) return e;
    if (Failure e = session_.use()) return e;
    if (Failure e = session_.call(f_.download, "reading from the device", data, buffer(b).at + offset,
                                  size_t(bytes), session_.stream()))
      return e;
    return wait_for("reading from the device");
  }

  Failure load(const KernelCode& code, Kernel** out) override {
    if (code.code.empty()) return {Failure::Invalid, format("kernel {} has no module", code.name)};
    if (Failure e = session_.use()) return e;
    auto k = std::make_unique<DriverKernel>();
    k->facts = code;
    void* module = nullptr;
    if (Failure e = module_of(code, &module)) return e;
    const std::string name(code.name);  // ends in a zero
    if (Failure e = session_.call(f_.find_function, "loading a kernel", &k->function, module, name.c_str()))
      return e.text += format(" (kernel {})", name), e;
    *out = kernels_.emplace_back(std::move(k)).get();
    return {};
  }

  Failure compile(std::string_view text, std::vector<uint8_t>* code) override {
    const Vendor& v = *session_.driver().vendor;
    return compile_text(v.compiler, compiler_, text, v.compiler_options(gpu_), code);
  }

  Failure record(std::span<const Launch> launches, Recording** out) override {
    for (const Launch& l : launches)
      if (Failure e = check(l)) return e;
    if (Failure e = session_.use()) return e;
    auto r = std::make_unique<DriverRecording>(session_, launches);
    if (Failure e = r->record()) return e;
    *out = r.release();
    return {};
  }
  void discard(Recording* r) override {
    (void)session_.use();
    delete static_cast<DriverRecording*>(r);
  }
  Failure replay(Recording* r) override {
    if (Failure e = session_.use()) return e;
    return static_cast<DriverRecording*>(r)->replay();
  }
  Failure wait() override {
    if (Failure e = session_.use()) return e;
    return wait_for("computing");
  }

 private:
  Failure wait_for(const char* doing) {
    if (Failure e = session_.call(f_.record_event, doing, session_.finished(), session_.stream())) return e;
    return session_.call(f_.synchronize, doing, session_.finished());
  }

  // Kernels of one module share it. NVIDIA's driver compiles PTX here and writes errors to its log.
  Failure module_of(const KernelCode& code, void** out) {
    if (auto it = modules_.find(code.code.data()); it != modules_.end()) return *out = it->second, Failure{};
    char log[4096] = {};
    int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER, and its size
    void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
    const unsigned count = session_.driver().vendor->api == Api::Cuda ? 2 : 0;
    if (Failure e = session_.call(f_.load_module, "loading a kernel", out,
                                  static_cast<const void*>(code.code.data()), count, options, values)) {
      e.text += format(" (kernel {})", code.name);
      if (*log) e.text += format("; the driver's compiler: {}", static_cast<const char*>(log));
      return e;
    }
    modules_[code.code.data()] = *out;
    return {};
  }

  static Failure inside(Buffer* b, uint64_t offset, uint64_t bytes) {
    return check_inside(offset, bytes, buffer(b).bytes);
  }
  Failure check(const Launch& l) const {
    if (!l.kernel) return {Failure::Invalid, "a launch without a kernel"};
    return check_launch(facts_, static_cast<DriverKernel*>(l.kernel)->facts, l,
                        [](Buffer* b) { return buffer(b).bytes; });
  }

  Session session_;
  const Gpu gpu_;
  const std::string compiler_;  // the file of the library; empty: its usual names
  const Functions& f_ = session_.functions();
  Facts facts_;
  std::map<const uint8_t*, void*> modules_;  // by their image
  std::vector<std::unique_ptr<DriverKernel>> kernels_;
};

}  // namespace

int device_count(const Vendor& v) {
  Driver d;
  return open_driver(v, "", &d) ? 0 : d.devices;
}

Failure open_runtime(const Vendor& v, int index, Options& options, Gpu* gpu, std::unique_ptr<Runtime>* out) {
  Driver driver;
  bool graphs = true;
  if (Failure e = options.take_flag("graphs", &graphs)) return e;
  if (Failure e = open_driver(v, options.take("library").value_or(""), &driver)) return e;
  driver.graphs = driver.graphs && graphs;
  if (Failure e = examine(driver, index, gpu)) return e;
  auto runtime =
      std::make_unique<DriverRuntime>(std::move(driver), *gpu, options.take("compiler").value_or(""));
  if (Failure e = runtime->start()) return e;
  *out = std::move(runtime);
  return {};
}

Failure open(const Vendor& v, int index, Options& options, Opened* out) {
  Gpu gpu;
  bool matrix = true;
  if (Failure e = options.take_flag("matrix", &matrix)) return e;
  if (Failure e = open_runtime(v, index, options, &gpu, &out->runtime)) return e;
  if (matrix) out->matrix_kernels = v.matrix_kernels_for(gpu);
  out->tensor_kernels = v.tensor_kernels_for(gpu), out->text_kernels = v.text_kernels();
  return v.kernels_for(gpu, &out->kernels);
}

}  // namespace gimbal::gpu::driver_api
