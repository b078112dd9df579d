// A GPU as a backend device (device/backend_impl.h), over any Runtime. Contains all code shared by the APIs:
// memory, packing, compilation of programs to launches, submission.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/abi.h"
#include "device/error_text.h"
#include "gpu/executable.h"
#include "gpu/options.h"
#include "gpu/rows.h"
#include "gpu/runtime.h"
#include "gpu/unpack.h"

namespace gimbal::gpu {

constexpr uint64_t kMinAllocation = 4096;

// Provided by a backend: an open device of its API, and the kernels built for it.
struct Opened {
  std::unique_ptr<Runtime> runtime;
  std::span<const KernelCode> kernels;
  std::span<const KernelCode> matrix_kernels =
      {};  // of gpu/matrix/kernels.def, if the device has matrix units
  std::span<const KernelCode> tensor_kernels = {};  // of gpu/tensors/kernels.def
  std::span<const KernelCode> text_kernels = {};    // of gpu/text/kernels.def
};

// Several threads may pack weights at once; all other calls must be serialized.
class Device {
 public:
  // Optional limits below the device's own, in bytes.
  struct Least {
    uint64_t binding = UINT64_MAX, allocation = UINT64_MAX, part = UINT64_MAX;
  };
  Device(const char* backend, Opened opened, const Least& most);
  ~Device();
  Device(const Device&) = delete;

  static ErrorText& error();  // of the calling thread

  void describe(gimbal_device_info&);
  const gimbal_kernel_info* rows(size_t* n, size_t* stride);
  gimbal_code alloc(size_t bytes, gimbal_buffer** out);
  void release(gimbal_buffer*);
  gimbal_code write(gimbal_buffer*, size_t offset, const void*, size_t);
  gimbal_code read(gimbal_buffer*, size_t offset, void*, size_t);
  uint64_t packed_bytes(uint8_t type, int64_t columns, int64_t rows);
  gimbal_code pack(gimbal_buffer*, const gimbal_value&, const void* source, int64_t begin, int64_t end);
  uint64_t cache_bytes(uint8_t type, uint8_t is_key, int64_t head_dim, int64_t heads, int64_t page,
                       int64_t pages);
  gimbal_code compile(const gimbal_program&, gimbal_executable** out);
  void discard(gimbal_executable*);
  gimbal_code submit(gimbal_executable*, gimbal_buffer* const* slots, size_t n, gimbal_step);
  gimbal_code wait();
  gimbal_code measure(gimbal_limits&);
  gimbal_code run_counts(gimbal_executable*, uint64_t* counts, size_t n);
  gimbal_code scratch_bytes(const gimbal_program&, uint64_t* out);
  gimbal_code add_kernel(const gimbal_host_kernel&);

  const Counters& counters() const { return counters_; }

  static gimbal_code fail(const Failure&);  // OK without a failure

 private:
  Failure make(uint64_t bytes, DeviceBuffer** out);
  Failure make_pieces(DeviceBuffer&, std::span<const uint64_t> cuts);
  Failure make_pending(const Cuts&);
  Failure made(DeviceBuffer&);  // fallback, if no program determined the cuts
  void free_pieces(DeviceBuffer&);
  Failure kernel_named(std::string_view name, Kernel** out);
  Failure add_text(const gimbal_host_kernel&);
  Failure settle();  // waits for replayed work before its inputs change
  Failure upload(DeviceBuffer&, uint64_t offset, const void*, uint64_t bytes);
  Failure start(Executable&, DeviceBuffer* const* slots, size_t n, gimbal_step);

  std::mutex mutex_;   // serializes use of the runtime
  Unpacker unpacker_;  // before the runtime, which keeps pointers into it
  std::unique_ptr<Runtime> runtime_;
  const std::span<const KernelCode> codes_, matrix_codes_, tensor_codes_, text_codes_;
  Rows rows_;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> texts_;  // compiled, in use by the runtime
  Limits limits_;
  std::map<std::string_view, Kernel*> kernels_;
  std::vector<Executable*> executables_;
  std::vector<DeviceBuffer*> pending_;  // larger than an allocation, not cut yet
  DeviceBuffer *nothing_ = nullptr, *step_ = nullptr;
  gimbal_step written_{-1, -1};  // current contents of step_
  bool running_ = false;
  Counters counters_;
};

// The class for GIMBAL_EXPORT_BACKEND. Api has `static int count()` and `static
// Failure open(int index, Options&, Opened*)`, which takes the options that it
// knows; optionally `static const char* depends_on()`, as in abi.h. Every GPU
// backend accepts max_binding=N and max_allocation=N (lower limits for bindings
// and allocations, in bytes), part=N (larger matrices are launched in parts) and
// tensors=1 (with the rows of the tensor library, which models do not need).
template <class Api>
class DeviceOf final : public Device {
 public:
  using Device::Device;
  static int count() { return Api::count(); }
  static const char* depends_on() requires requires { Api::depends_on(); }
  { return Api::depends_on(); }
  static gimbal_code open(int index, const char* lines, DeviceOf** out) {
    Options options;
    Opened opened;
    Least most;
    if (Failure f = Options::parse(lines, &options)) return fail(f);
    if (Failure f = options.take_number("max_binding", &most.binding)) return fail(f);
    if (Failure f = options.take_number("max_allocation", &most.allocation)) return fail(f);
    if (Failure f = options.take_number("part", &most.part)) return fail(f);
    if (most.allocation < kMinAllocation)
      return fail({Failure::Invalid, "max_allocation must be at least 4096"});
    bool tensors = false;
    if (Failure f = options.take_flag("tensors", &tensors)) return fail(f);
    if (Failure f = Api::open(index, options, &opened)) return fail(f);
    if (!tensors) opened.tensor_kernels = opened.text_kernels = {};
    if (Failure f = options.unknown()) return fail(f);
    *out = new DeviceOf(Api::kName, std::move(opened), most);
    return GIMBAL_OK;
  }
};

}  // namespace gimbal::gpu
