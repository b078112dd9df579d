// A backend to copy: complete, and as simple as one can be. docs/adding-a-backend.md goes through it.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/host_memory.h"
#include "compute.h"
#include "device/backend_impl.h"
#include "device/values.h"
#include "ops/op_def.h"

namespace gimbal::GIMBAL_BACKEND_NAME {
namespace {

// The engine's gimbal_buffer. It has a name of its own, because other backends have buffers, too.
struct Memory {
  unsigned char* bytes;
};
Memory& of(gimbal_buffer* b) { return *reinterpret_cast<Memory*>(b); }

// The engine's gimbal_executable: a copy of the program, because the engine may free its own.
struct Compiled {
  std::vector<gimbal_value> values;
  std::vector<gimbal_op> ops;
  uint64_t runs = 0;
};
Compiled& of(gimbal_executable* e) { return *reinterpret_cast<Compiled*>(e); }

class Device {
 public:
  static int count() { return 1; }
  static ErrorText& error() {
    thread_local ErrorText text;
    return text;
  }
  static gimbal_code open(int, const char* options, Device** out) {
    if (options && *options) return refuse("this backend has no options");
    *out = new Device;
    return GIMBAL_OK;
  }

  // Where the device is a real one, its driver knows all this.
  void describe(gimbal_device_info& i) {
    const HostMemory memory = host_memory();
    i.name = "definitions of the ops, computed one by one";
    i.memory_total = memory.total, i.memory_free = memory.available;
    i.threads = 1;
    i.unified_memory = 1;
  }
  const gimbal_kernel_info* rows(size_t* n, size_t* stride) {
    *n = rows_.size(), *stride = sizeof(gimbal_kernel_info);
    return rows_.data();
  }

  gimbal_code alloc(size_t n, gimbal_buffer** out) {
    auto b = std::make_unique<Memory>();
    const size_t size = (n + 64) / 64 * 64;  // never nothing
    b->bytes = n <= size ? static_cast<unsigned char*>(std::aligned_alloc(64, size)) : nullptr;
    if (!b->bytes) throw std::bad_alloc();
    std::memset(b->bytes, 0, size);
    *out = reinterpret_cast<gimbal_buffer*>(b.release());
    return GIMBAL_OK;
  }
  void release(gimbal_buffer* b) {
    std::free(of(b).bytes);
    delete &of(b);
  }
  gimbal_code write(gimbal_buffer* b, size_t o, const void* p, size_t n) {
    return std::memcpy(of(b).bytes + o, p, n), GIMBAL_OK;
  }
  gimbal_code read(gimbal_buffer* b, size_t o, void* p, size_t n) {
    return std::memcpy(p, of(b).bytes + o, n), GIMBAL_OK;
  }

  // This device has no layout of its own: weights stay as in files, and pack() is never called.
  uint64_t packed_bytes(uint8_t, int64_t, int64_t) { return 0; }
  gimbal_code pack(gimbal_buffer*, const gimbal_value&, const void*, int64_t, int64_t) {
    return GIMBAL_UNSUPPORTED;
  }
  uint64_t cache_bytes(uint8_t, uint8_t, int64_t head_dim, int64_t heads, int64_t page, int64_t pages) {
    return GIMBAL_BACKEND_NAME::cache_bytes(head_dim, heads, page, pages);
  }

  gimbal_code compile(const gimbal_program& p, gimbal_executable** out) {
    *out = reinterpret_cast<gimbal_executable*>(
        new Compiled{{p.values, p.values + p.n_values}, {p.ops, p.ops + p.n_ops}, 0});
    return GIMBAL_OK;
  }
  void discard(gimbal_executable* e) { delete &of(e); }

  gimbal_code submit(gimbal_executable* e, gimbal_buffer* const* slots, size_t n, gimbal_step step) {
    Compiled& c = of(e);
    std::vector<unsigned char*> memory;
    for (size_t i = 0; i < n; i++) memory.push_back(slots[i] ? of(slots[i]).bytes : nullptr);
    const gimbal_program p{c.values.data(), c.values.size(), c.ops.data(), c.ops.size()};
    for (const gimbal_op& op : c.ops) {
      // The output defines the number of rows of a step; for a cache, the value written to it.
      const OpDef& d = def(OpKind(op.kind));
      const gimbal_value& v = c.values[d.has(Role::Written) ? op.in[d.rows_input()] : op.out[0]];
      compute(p, op, memory.data(), rows_in_step(v, step));
    }
    c.runs++;
    return GIMBAL_OK;
  }
  gimbal_code wait() { return GIMBAL_OK; }  // submit() returned when all was computed
  gimbal_code run_counts(gimbal_executable* e, uint64_t* counts, size_t n) {
    for (size_t i = 0; i < n; i++) counts[i] = of(e).runs;
    return GIMBAL_OK;
  }

 private:
  static gimbal_code refuse(const char* why) { return error() = why, GIMBAL_INVALID; }

  const std::vector<gimbal_kernel_info> rows_ = kernel_rows();
};

}  // namespace
}  // namespace gimbal::GIMBAL_BACKEND_NAME

GIMBAL_EXPORT_BACKEND(gimbal::GIMBAL_BACKEND_NAME::Device)
