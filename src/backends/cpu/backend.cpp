// The CPU as a device: memory, the kernel rows of every instruction set that this build has, and running
// programs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/compiled_program.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "backends/cpu/thread_pool.h"
#include "device/backend_impl.h"
#include "device/claims.h"
#include "device/tensor_claims.h"
#include "packing/pack.h"

#define CPU_VARIANT_ROW(name, needs) \
  namespace name {                   \
  extern const CpuRow* const table;  \
  extern const size_t table_size;    \
  }
#define CPU_TENSORS_ROW(name, needs)  \
  namespace name {                    \
  extern const CpuRow* const tensors; \
  extern const size_t tensors_size;   \
  }
#include "variants.inc"
#undef CPU_VARIANT_ROW
#undef CPU_TENSORS_ROW

namespace gimbal::cpu {
namespace {

struct Variant {
  const char* name;
  uint32_t needs;
  const CpuRow* const* table;
  const size_t* size;
};
const Variant kVariants[] = {
#define CPU_VARIANT_ROW(name, needs) {#name, uint32_t(needs), &::name::table, &::name::table_size},
#include "variants.inc"
#undef CPU_VARIANT_ROW
};
// The rows of the tensor library, in builds that have it: programs that run models do without.
constexpr Variant kNoTensors = {"", 0, nullptr, nullptr};
const Variant kTensors[] = {
#define CPU_VARIANT_ROW(name, needs)
#define CPU_TENSORS_ROW(name, needs) {#name, uint32_t(needs), &::name::tensors, &::name::tensors_size},
#include "variants.inc"
#undef CPU_VARIANT_ROW
#undef CPU_TENSORS_ROW
    kNoTensors,
};

// The limits that all kernels share, and those on the number of rows.
constexpr gimbal_limit kFewSizes[] = {
    kSizes[0],
    kSizes[1],
    {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 2, kMaxFewRows},
};
constexpr gimbal_limit kPromptSizes[] = {
    kSizes[0],
    kSizes[1],
    {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, kPromptRows, INT64_MAX},
};

constexpr gimbal_limit kManySizes[] = {
    kSizes[0],
    kSizes[1],
    {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, kMaxFewRows + 1, INT64_MAX},
};

DTypeSet formats_of(const CpuClaim& c) {
  const auto format = DType(c.format);
  if (!c.alike) return set_of(format);
  DTypeSet all = 0;
  for (DType t : kAllDTypes)
    if (first_alike(t) == first_alike(format)) all |= set_of(t);
  return all;
}

CpuKernel kernel_of(const CpuRow& r, uint32_t needs) {
  const CpuClaim& c = r.info;
  const auto op = OpKind(c.op);
  gimbal_kernel_info k =
      is_tensor_op(op) ? tensor_claims(c.name, op, DType(c.format)) : claims(c.name, op, formats_of(c));
  k.rank = c.rank, k.needs = needs;
  if (is_tensor_op(op) && r.by_row) k.params |= GIMBAL_BY_ELEMENT;
  if (op == OpKind::MatMul || op == OpKind::ExpertMatMul) k.in[1] = claim_of(set_of(DType(c.x)));
  if (c.rows == CpuRows::Few) limit(k, kFewSizes);
  if (c.rows == CpuRows::Prompts) limit(k, kPromptSizes);
  if (c.rows == CpuRows::Many) limit(k, kManySizes);
  if (c.tolerance > 0) k.numerics = GIMBAL_FAST, k.tolerance = c.tolerance;
  return {k, r.work, r.launch, r.by_row, r.items_at_once, r.item_outputs, r.launch_two, r.scratch};
}

constexpr size_t kMostHostKernels = 256;

class CpuDevice {
 public:
  static int count() { return 1; }
  static ErrorText& error() {
    thread_local ErrorText text;
    return text;
  }
  static gimbal_code open(int, const char* options, CpuDevice** out);

  void describe(gimbal_device_info& i);
  const gimbal_kernel_info* rows(size_t* n, size_t* stride) {
    *n = rows_.size(), *stride = sizeof(CpuKernel);
    return &rows_[0].info;
  }

  gimbal_code alloc(size_t n, gimbal_buffer** out) { return *out = new_buffer(n), GIMBAL_OK; }
  void release(gimbal_buffer* b) { delete_buffer(b); }
  gimbal_code adopt(const void* data, size_t, gimbal_buffer** out) {
    // Kernels only read the slot of the weights; the cast is needed because all buffers have one type.
    *out = new gimbal_buffer{static_cast<unsigned char*>(const_cast<void*>(data)), 0, true};
    return GIMBAL_OK;
  }
  void* host_pointer(gimbal_buffer* b) { return b->adopted ? nullptr : b->data; }
  gimbal_code add_kernel(const gimbal_host_kernel& k);
  gimbal_code write(gimbal_buffer* b, size_t o, const void* p, size_t n) {
    if (b->adopted) return refuse_adopted();
    if (n) memcpy(b->data + o, p, n);  // of no bytes, p may be null
    return GIMBAL_OK;
  }
  gimbal_code read(gimbal_buffer* b, size_t o, void* p, size_t n) {
    if (n) memcpy(p, b->data + o, n);
    return GIMBAL_OK;
  }

  uint64_t packed_bytes(uint8_t type, int64_t columns, int64_t rows) {
    return uint64_t(cpu::packed_bytes(DType(type), columns, rows));
  }
  gimbal_code pack(gimbal_buffer* b, const gimbal_value& v, const void* source, int64_t begin, int64_t end) {
    if (b->adopted) return refuse_adopted();
    cpu::pack(DType(v.dtype), v.dim[0], v.dim[1], static_cast<const uint8_t*>(source), b->data + v.offset,
              begin, end);
    return GIMBAL_OK;
  }
  uint64_t cache_bytes(uint8_t type, uint8_t is_key, int64_t head_dim, int64_t heads, int64_t,
                       int64_t pages) {
    return uint64_t(cpu::cache_bytes(DType(type), is_key, head_dim, heads, pages));
  }

  gimbal_code compile(const gimbal_program& p, gimbal_executable** out);
  void discard(gimbal_executable* e) { delete reinterpret_cast<CompiledProgram*>(e); }
  gimbal_code submit(gimbal_executable* e, gimbal_buffer* const* slots, size_t n, gimbal_step step);
  gimbal_code wait() { return GIMBAL_OK; }  // submit() returns when everything is computed
  gimbal_code run_counts(gimbal_executable* e, uint64_t* counts, size_t n) {
    return reinterpret_cast<CompiledProgram*>(e)->run_counts(counts, n), GIMBAL_OK;
  }
  gimbal_code measure(gimbal_limits& l) {
    return measure_limits(features_, pool_, limit_bytes_, l), GIMBAL_OK;
  }

 private:
  static gimbal_code refuse_adopted() {
    error() = "the buffer is read-only host memory";
    return GIMBAL_INVALID;
  }
  CpuDevice(int threads, uint32_t features, uint64_t limit_bytes)
      : features_(features), limit_bytes_(limit_bytes), pool_(threads), name_(cpu_name()) {}

  const uint32_t features_;
  const uint64_t limit_bytes_;  // read by measure(); 0: its own choice
  ThreadPool pool_;
  std::string name_;
  std::vector<CpuKernel> rows_;
};

gimbal_code refuse(const std::string& why) {
  CpuDevice::error() = why;
  return GIMBAL_INVALID;
}

gimbal_code CpuDevice::open(int, const char* options, CpuDevice** out) {
  int threads = default_threads();
  uint32_t features = cpu_features();
  uint64_t limit_bytes = 0;
  for (const char* at = options ? options : ""; *at;) {
    const char* end = strchr(at, '\n');
    std::string line(at, end ? size_t(end - at) : strlen(at));
    at += line.size() + (end ? 1 : 0);
    auto equals = line.find('=');
    std::string key = line.substr(0, equals),
                value = equals == std::string::npos ? "" : line.substr(equals + 1);
    if (key == "threads" || key == "limit_megabytes") {
      const long most = key == "threads" ? 1024 : 1 << 20;
      char* rest = nullptr;
      long n = strtol(value.c_str(), &rest, 10);
      if (value.empty() || *rest || n < 1 || n > most)
        return refuse(key + " must be a number from 1 to " + std::to_string(most) + ", not '" + value + "'");
      if (key == "threads") threads = int(n);
      else limit_bytes = uint64_t(n) * 1000000;
    } else if (key == "variant") {
      std::string names;
      const Variant* chosen = nullptr;
      for (const Variant& v : kVariants) {
        names += (names.empty() ? "" : ", ") + std::string(v.name);
        if (value == v.name) chosen = &v;
      }
      if (!chosen) return refuse("there is no CPU variant '" + value + "'; this build has: " + names);
      if (uint32_t missing = chosen->needs & ~cpu_features()) {
        std::string lacks;
        for (int bit = 0; kFeatureNames[bit]; bit++)
          if (missing >> bit & 1) lacks += (lacks.empty() ? "" : ", ") + std::string(kFeatureNames[bit]);
        return refuse("CPU variant '" + value + "' needs " + lacks + ", which this CPU lacks");
      }
      features = chosen->needs;
    } else {
      return refuse("unknown option '" + line + "'");
    }
  }
  auto d = std::unique_ptr<CpuDevice>(new CpuDevice(threads, features, limit_bytes));
  size_t rows = kMostHostKernels;
  for (const Variant& v : kVariants) rows += *v.size;
  for (const Variant* v = kTensors; v->table; v++) rows += *v->size;
  d->rows_.reserve(rows);
  for (const Variant& v : kVariants)
    for (size_t i = 0; i < *v.size; i++) d->rows_.push_back(kernel_of((*v.table)[i], v.needs));
  for (const Variant* v = kTensors; v->table; v++)
    for (size_t i = 0; i < *v->size; i++) d->rows_.push_back(kernel_of((*v->table)[i], v->needs));
  *out = d.release();
  return GIMBAL_OK;
}

void CpuDevice::describe(gimbal_device_info& i) {
  Memory m = memory();
  i.name = name_.c_str();
  i.memory_total = m.total, i.memory_free = m.available;
  i.features = features_, i.feature_names = kFeatureNames;
  i.threads = uint32_t(pool_.size());
  i.software = 0, i.unified_memory = 1;
}

const gimbal_host_kernel& host_kernel_of(const CpuTask& t) {
  return *reinterpret_cast<const gimbal_host_kernel*>(t.op->param.i[0]);
}
CpuWork work_of_host_kernel(const CpuTask& t) {
  const gimbal_host_kernel& k = host_kernel_of(t);
  return {std::max<int64_t>(1, k.parts(k.user, t.op, t.out)), 1e9};  // cost unknown: worth several threads
}
void launch_host_kernel(const CpuTask& t, int64_t begin, int64_t end) {
  const gimbal_host_kernel& k = host_kernel_of(t);
  k.compute(k.user, t.op, t.out, t.y, t.in, t.x, begin, end);
}

// Compiled programs point into the table: it has room from the beginning, and never moves.
gimbal_code CpuDevice::add_kernel(const gimbal_host_kernel& k) {
  if (rows_.size() == rows_.capacity())
    return refuse("the device has " + std::to_string(kMostHostKernels) + " kernels of the program, its most");
  rows_.push_back({k.info, work_of_host_kernel, launch_host_kernel});
  return GIMBAL_OK;
}

gimbal_code CpuDevice::compile(const gimbal_program& p, gimbal_executable** out) {
  *out = reinterpret_cast<gimbal_executable*>(new CompiledProgram(p, rows_.data(), pool_.size()));
  return GIMBAL_OK;
}

gimbal_code CpuDevice::submit(gimbal_executable* e, gimbal_buffer* const* slots, size_t n, gimbal_step step) {
  reinterpret_cast<CompiledProgram*>(e)->run(slots, n, step, pool_);
  return GIMBAL_OK;
}

}  // namespace
}  // namespace gimbal::cpu

GIMBAL_EXPORT_BACKEND(gimbal::cpu::CpuDevice)
