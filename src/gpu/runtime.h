// What a GPU programming interface must offer to run the engine: a dozen functions. Everything above (which
// kernel for which op, where weights lie, what is launched) is simt's, written once; everything below is one
// folder per API. Functions fail with a value; texts are for people. A runtime is used by one thread at a
// time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gimbal::simt {

// Why something did not work. Ok is false when `code` is.
struct Failure {
  enum Code : uint8_t { None, Unsupported, OutOfMemory, DeviceLost, Invalid } code = None;
  std::string text;         // what happened; in the next line, where something can be done, what
  const char* reason = "";  // for programs: one of device/reason.h, where opening a device failed for it
  explicit operator bool() const { return code != None; }
};

struct Facts {                             // of one device
  std::string name, driver;                // "llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa 22.3.6"
  std::string pci_id, compute_capability;  // "0000:65:00.0"; "9.0", "gfx942"; empty where there is none
  uint64_t memory_total = 0, memory_free = 0;
  uint64_t max_allocation_bytes = UINT64_MAX;  // larger buffers are made of several
  uint64_t max_binding_bytes = 0;              // larger matrices are bound, and launched, in parts
  uint32_t binding_alignment = 4;              // of the offset of a binding; a power of two, at most 256
  uint32_t max_groups = 65535;                 // in each dimension of a grid
  // Lanes of a sub-group that exchange values among themselves, in kernels whose groups it divides; 1: all go
  // through shared memory. Known when the first kernel has been loaded.
  uint32_t subgroup_lanes = 1;
  bool software = false, unified_memory = false;
};

// One kernel of the generated table (kernels.def): its text for this API, or a handle into a module.
struct KernelCode {
  std::string_view name;  // "mat_mul_q4_0"; also the entry point where an API wants one
  std::span<const uint8_t> code;
  uint32_t lanes = 0;        // threads of a group
  uint32_t bindings = 0;     // buffers, in the order of the kernel's BUFFERS list
  uint32_t writable = 0;     // bit i: binding i is written
  uint32_t param_bytes = 0;  // of its PARAMS; at most kMaxParamBytes
  bool trees = false;        // it joins values of lanes (TREE_n), in sub-groups where there are
  // Where a language has a second text for that: the one for devices whose sub-groups exchange values.
  std::span<const uint8_t> subgroup_code = {};
  bool packed = false;  // both: gpu/unpack.h must see them before a runtime
};
constexpr uint32_t kMaxBindings = 8, kMaxParamBytes = 96;
// Where an API numbers them: a kernel's own buffers are 0, 1, ...; these two are the same for all kernels.
constexpr uint32_t kStepBinding = 8, kParamsBinding = 9;

// Each runtime derives its own from these.
struct Buffer {};     // device memory
struct Kernel {};     // a kernel ready to launch
struct Recording {};  // launches ready to be replayed

struct Binding {
  Buffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;  // offset: a multiple of Facts::binding_alignment; bytes: of 4
};
struct Launch {
  Kernel* kernel = nullptr;
  Binding binding[kMaxBindings];
  Binding step;  // the step data: what STEP_ROWS (word 0) and STEP_OUT_ROWS (word 1) read
  uint8_t params[kMaxParamBytes] = {};
  uint32_t groups[3] = {1, 1, 1};
  // Launches that read or write what an earlier one wrote begin after it has ended: the engine marks the
  // first of them, and all before it end before it begins.
  bool after_all = true;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual const Facts& facts() = 0;  // memory_free is read anew by every call

  virtual Failure allocate(uint64_t bytes, Buffer** out) = 0;  // zeroed
  virtual void release(Buffer*) = 0;
  virtual Failure write(Buffer*, uint64_t offset, const void* data,
                        uint64_t bytes) = 0;  // done when it returns
  virtual Failure read(Buffer*, uint64_t offset, void* data,
                       uint64_t bytes) = 0;  // after all that was replayed

  virtual Failure load(const KernelCode&, Kernel** out) = 0;  // owned by the runtime
  virtual Failure record(std::span<const Launch>, Recording** out) = 0;
  virtual void discard(Recording*) = 0;
  virtual Failure replay(Recording*) = 0;  // may return before it is done
  virtual Failure wait() = 0;              // until everything replayed is done
};

}  // namespace gimbal::simt
