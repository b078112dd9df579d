// A backend over host memory whose rows, features, failures and arithmetic a test chooses: through the same C
// table and the same helper (device/backend_impl.h) as a real one.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/backend_impl.h"
#include "device/claims.h"
#include "device/device.h"
#include "device/values.h"
#include "ops/op.h"
#include "tensor/dtype.h"

struct gimbal_buffer {
  std::vector<unsigned char> bytes;
};

namespace gimbal::test {

// One op bound to memory, as a kernel sees it.
struct FakeCall {
  const gimbal_op& op;
  const gimbal_value& out;
  unsigned char* y;
  std::vector<const unsigned char*> x;
  int rows;  // of the output to compute
  std::vector<const gimbal_value*> in;
};

struct FakeSettings {
  std::vector<gimbal_kernel_info> rows;
  std::function<void(const FakeCall&)> compute = [](const FakeCall&) {};
  std::vector<const char*> feature_names = {"wings", "wheels", nullptr};
  uint32_t features = 0;
  uint64_t memory_free = 1 << 30;
  int devices = 1;
  std::string open_error;  // when not empty, open() fails with these words
  DTypeSet packs = 0;      // formats with a packed layout, of 1000 bytes per row
  int allocations = 0;
};

class FakeDevice {
 public:
  static FakeSettings& settings() {
    static FakeSettings s;
    return s;
  }
  static ErrorText& error() {
    thread_local ErrorText text;
    return text;
  }
  static int count() { return settings().devices; }
  static gimbal_code open(int, const char*, FakeDevice** out) {
    error() = settings().open_error;
    if (!settings().open_error.empty()) return GIMBAL_INVALID;
    *out = new FakeDevice;
    return GIMBAL_OK;
  }
  void describe(gimbal_device_info& i) {
    i.name = "a device made by a test";
    i.memory_total = i.memory_free = settings().memory_free;
    i.features = settings().features, i.feature_names = settings().feature_names.data();
  }
  const gimbal_kernel_info* rows(size_t* n, size_t* stride) {
    *n = settings().rows.size(), *stride = sizeof(gimbal_kernel_info);
    return settings().rows.data();
  }
  gimbal_code alloc(size_t n, gimbal_buffer** out) {
    settings().allocations++;
    *out = new gimbal_buffer{std::vector<unsigned char>(n)};
    return GIMBAL_OK;
  }
  void release(gimbal_buffer* b) { delete b; }
  gimbal_code write(gimbal_buffer* b, size_t o, const void* p, size_t n) {
    return std::memcpy(b->bytes.data() + o, p, n), GIMBAL_OK;
  }
  gimbal_code read(gimbal_buffer* b, size_t o, void* p, size_t n) {
    return std::memcpy(p, b->bytes.data() + o, n), GIMBAL_OK;
  }
  uint64_t packed_bytes(uint8_t t, int64_t, int64_t rows) {
    return has(settings().packs, DType(t)) ? 1000 * uint64_t(rows) : 0;
  }
  gimbal_code pack(gimbal_buffer*, const gimbal_value&, const void*, int64_t, int64_t) { return GIMBAL_OK; }
  uint64_t cache_bytes(uint8_t t, uint8_t, int64_t hd, int64_t heads, int64_t page, int64_t pages) {
    return uint64_t(row_bytes(DType(t), hd)) * uint64_t(heads) * uint64_t(page) * uint64_t(pages);
  }

  struct Compiled {
    std::vector<gimbal_value> values;
    std::vector<gimbal_op> ops;
  };
  gimbal_code compile(const gimbal_program& p, gimbal_executable** out) {
    *out = reinterpret_cast<gimbal_executable*>(
        new Compiled{{p.values, p.values + p.n_values}, {p.ops, p.ops + p.n_ops}});
    return GIMBAL_OK;
  }
  void discard(gimbal_executable* e) { delete reinterpret_cast<Compiled*>(e); }
  gimbal_code submit(gimbal_executable* e, gimbal_buffer* const* slots, size_t, gimbal_step step) {
    const Compiled& c = *reinterpret_cast<Compiled*>(e);
    for (const gimbal_op& op : c.ops) {
      auto at = [&](const gimbal_value& v) { return slots[v.slot]->bytes.data() + v.offset; };
      const gimbal_value& out = c.values[op.out[0]];
      FakeCall call{op, out, at(out), {}, int(rows_of(out)), {}};
      if (out.extent == GIMBAL_STEP_ROWS) call.rows = step.rows;
      if (out.extent == GIMBAL_OUT_ROWS) call.rows = step.out_rows;
      for (int i = 0; i < op.inputs; i++) {
        call.in.push_back(&c.values[op.in[i]]);
        call.x.push_back(at(*call.in.back()));
      }
      settings().compute(call);
    }
    return GIMBAL_OK;
  }
  gimbal_code wait() { return GIMBAL_OK; }
};

inline const gimbal_backend& fake_backend() {
  static constexpr gimbal_backend table = BackendTable<FakeDevice>::make("fake");
  return table;
}

// The fake with these settings, open.
inline std::unique_ptr<Device> open_fake(FakeSettings settings) {
  FakeDevice::settings() = std::move(settings);
  auto d = Device::open(fake_backend(), 0);
  return d ? std::move(*d) : nullptr;
}

// A row for an op on f32 that any device fits, for dense weights.
inline gimbal_kernel_info fake_row(const char* name, OpKind op, int rank = 0) {
  gimbal_kernel_info k = claims(name, op, set_of(DType::F32), GIMBAL_DENSE);
  k.rank = int16_t(rank);
  return k;
}

}  // namespace gimbal::test
