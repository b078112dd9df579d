// The interface of a GPU API to the engine: a dozen functions. All code
// above it (kernel selection, layouts, launches) is shared; all code
// below it is one folder per API. Functions return failures as values,
// with texts for people. A runtime is used by one thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::gpu {

// An error; converts to true unless `code` is None.
struct Failure {
  enum Code : uint8_t { None, Unsupported, OutOfMemory, DeviceLost, Invalid } code = None;
  std::string text;         // what happened; in the next line the remedy, if there is one
  const char* reason = "";  // for programs: one of device/reason.h if opening a device failed
  explicit operator bool() const { return code != None; }
};

struct Facts {                             // about one device
  std::string name, driver;                // "llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa 22.3.6"
  std::string pci_id, compute_capability;  // "0000:65:00.0"; "9.0", "gfx942", "Vulkan 1.3"; may be empty
  uint64_t memory_total = 0, memory_free = 0;
  uint64_t max_allocation_bytes = UINT64_MAX;  // larger buffers are split into several
  uint64_t max_binding_bytes = 0;              // larger matrices are bound and launched in parts
  uint32_t binding_alignment = 4;              // of binding offsets; a power of two, at most 256
  uint32_t max_groups = 65535;                 // per dimension of a grid
  // Lanes per sub-group that exchange values directly, in kernels with a multiple of it per group; 1: all
  // exchanges use shared memory. Known after the first kernel was loaded.
  uint32_t subgroup_lanes = 1;
  bool software = false, unified_memory = false;
};

// A kernel of the generated table (kernels.def): its text for this API, or a handle into a module.
struct KernelCode {
  std::string_view name;  // "mat_mul_q4_0"; also the entry point if the API uses one
  std::span<const uint8_t> code;
  uint32_t lanes = 0;        // threads per group
  uint32_t bindings = 0;     // buffers, in the order of the kernel's BUFFERS list
  uint32_t writable = 0;     // bit i: binding i is written
  uint32_t param_bytes = 0;  // size of its PARAMS; at most kMaxParamBytes
  bool trees = false;        // combines values of lanes (TREE_n), in sub-groups if supported
  // Optional second text, for devices whose sub-groups exchange values.
  std::span<const uint8_t> subgroup_code = {};
  bool packed = false;  // both texts: gpu/unpack.h must unpack them first
};
constexpr uint32_t kMaxBindings = 8, kMaxParamBytes = 96;
// Binding numbers: a kernel's own buffers are 0, 1, ...; these two are the same for all kernels.
constexpr uint32_t kStepBinding = 8, kParamsBinding = 9;

// Base classes for each runtime's own types.
struct Buffer {};     // device memory
struct Kernel {};     // ready to launch
struct Recording {};  // launches recorded for replay

struct Binding {
  Buffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;  // offset: a multiple of Facts::binding_alignment; bytes: of 4
};
struct Launch {
  Kernel* kernel = nullptr;
  Binding binding[kMaxBindings];
  Binding step;  // the step data: STEP_ROWS (word 0) and STEP_OUT_ROWS (word 1)
  uint8_t params[kMaxParamBytes] = {};
  uint32_t groups[3] = {1, 1, 1};
  // A barrier: all earlier launches end before this one begins. The engine sets it on the first launch that
  // reads or writes the output of an earlier one.
  bool after_all = true;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual const Facts& facts() = 0;  // memory_free is updated on every call

  virtual Failure allocate(uint64_t bytes, Buffer** out) = 0;  // zeroed
  virtual void release(Buffer*) = 0;
  virtual Failure write(Buffer*, uint64_t offset, const void* data,
                        uint64_t bytes) = 0;  // synchronous
  virtual Failure read(Buffer*, uint64_t offset, void* data,
                       uint64_t bytes) = 0;  // waits for all replayed work

  virtual Failure load(const KernelCode&, Kernel** out) = 0;  // owned by the runtime
  // From a text in the API's language (gpu/text/kernels.def) to the code that load() takes. Errors:
  // Unsupported without a compiler, with its name; Invalid with the words of the compiler.
  virtual Failure compile(std::string_view text, std::vector<uint8_t>* code) {
    (void)text, (void)code;
    return {Failure::Unsupported, "this backend compiles no kernel texts at run time"};
  }
  virtual Failure record(std::span<const Launch>, Recording** out) = 0;
  virtual void discard(Recording*) = 0;
  virtual Failure replay(Recording*) = 0;  // asynchronous
  virtual Failure wait() = 0;              // until all replayed work is done
};

}  // namespace gimbal::gpu
