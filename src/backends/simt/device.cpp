#include "backends/simt/device.h"

#include <algorithm>

#include "backends/packed/layout.h"
#include "backends/packed/pack.h"
#include "base/format.h"

namespace gimbal::simt {
namespace {

constexpr uint64_t kSmallBytes = 256;  // of the buffers that every launch binds

DeviceBuffer& buffer(gimbal_buffer* b) { return *reinterpret_cast<DeviceBuffer*>(b); }
Binding all_of(const DeviceBuffer& b) { return {b.buffer, 0, b.bytes}; }

}  // namespace

Device::Device(const char* backend, Opened opened, uint64_t max_binding, uint64_t part_bytes)
    : runtime_(std::move(opened.runtime)), codes_(opened.kernels), rows_(make_rows(backend)) {
  static_cast<Facts&>(limits_) = runtime_->facts();
  limits_.max_binding_bytes = std::min(limits_.max_binding_bytes, max_binding),
  limits_.part_bytes = part_bytes;
}

Device::~Device() {
  if (!executables_.empty() || nothing_) (void)runtime_->wait();
  for (DeviceBuffer* b : {nothing_, step_})
    if (b) runtime_->release(b->buffer), delete b;
}

std::string& Device::error() {
  thread_local std::string text;
  return text;
}

gimbal_code Device::fail(const Failure& f) {
  static constexpr gimbal_code kCodes[] = {GIMBAL_OK, GIMBAL_UNSUPPORTED, GIMBAL_OUT_OF_MEMORY,
                                           GIMBAL_DEVICE_LOST, GIMBAL_INVALID};
  if (f) error() = f.text;
  return kCodes[f.code];
}

void Device::describe(gimbal_device_info& i) {
  const std::lock_guard lock(mutex_);
  const Facts& now = runtime_->facts();
  static constexpr const char* kNoFeatures[] = {nullptr};
  i.name = limits_.name.c_str();
  i.memory_total = now.memory_total, i.memory_free = now.memory_free;
  i.feature_names = kNoFeatures;
  i.software = now.software, i.unified_memory = now.unified_memory;
}

const gimbal_kernel_info* Device::rows(size_t* n, size_t* stride) {
  *n = rows_.rows.size(), *stride = sizeof(Row);
  return &rows_.rows[0].info;
}

// ---- memory
// -------------------------------------------------------------------------------------------------
Failure Device::make(uint64_t bytes, DeviceBuffer** out) {
  auto b = std::make_unique<DeviceBuffer>();
  b->bytes = uint64_t(packed::up(int64_t(std::max<uint64_t>(bytes, 1)), int64_t(kSmallBytes)));
  if (Failure f = runtime_->allocate(b->bytes, &b->buffer)) return f;
  counters_.allocations++;
  *out = b.release();
  return {};
}

gimbal_code Device::alloc(size_t bytes, gimbal_buffer** out) {
  const std::lock_guard lock(mutex_);
  DeviceBuffer* b = nullptr;
  if (Failure f = make(bytes, &b)) return fail(f);
  *out = reinterpret_cast<gimbal_buffer*>(b);
  return GIMBAL_OK;
}

void Device::release(gimbal_buffer* b) {
  const std::lock_guard lock(mutex_);
  (void)settle();  // a device that is lost has nothing to wait for
  for (Executable* e : executables_) e->forget(*runtime_, &buffer(b));
  runtime_->release(buffer(b).buffer);
  delete &buffer(b);
}

Failure Device::settle() {
  if (!running_) return {};
  running_ = false;
  return runtime_->wait();
}

Failure Device::upload(Buffer* b, uint64_t offset, const void* data, uint64_t bytes) {
  if (Failure f = settle()) return f;
  counters_.uploads++, counters_.uploaded_bytes += bytes;
  return runtime_->write(b, offset, data, bytes);
}

gimbal_code Device::write(gimbal_buffer* b, size_t offset, const void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  return bytes ? fail(upload(buffer(b).buffer, offset, data, bytes)) : GIMBAL_OK;
}

gimbal_code Device::read(gimbal_buffer* b, size_t offset, void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  counters_.downloads++, counters_.downloaded_bytes += bytes;
  return bytes ? fail(runtime_->read(buffer(b).buffer, offset, data, bytes)) : GIMBAL_OK;
}

uint64_t Device::packed_bytes(uint8_t type, int32_t columns, int32_t rows) {
  return uint64_t(packed::packed_bytes(DType(type), columns, rows));
}

// The rows are laid out on the host, by the calling thread, and then written.
gimbal_code Device::pack(gimbal_buffer* b, const gimbal_value& v, const void* source, int32_t begin,
                         int32_t end) {
  const auto type = DType(v.dtype);
  const uint64_t tile = uint64_t(packed::tile_bytes(type, v.dim[0]));
  const int32_t last = std::min(end, v.dim[1]);
  if (begin >= last) return GIMBAL_OK;
  std::vector<uint8_t> tiles(uint64_t(last - begin + packed::kTileRows - 1) / packed::kTileRows * tile);
  packed::pack_tiles(type, v.dim[0], v.dim[1], static_cast<const uint8_t*>(source), tiles.data(), begin,
                     last);
  return write(b, v.offset + uint64_t(begin / packed::kTileRows) * tile, tiles.data(), tiles.size());
}

uint64_t Device::cache_bytes(uint8_t type, uint8_t is_key, int32_t head_dim, int32_t heads, int32_t,
                             int32_t pages) {
  return uint64_t(packed::cache_bytes(DType(type), is_key, head_dim, heads, pages));
}

// ---- programs
// -----------------------------------------------------------------------------------------------
Failure Device::kernel_named(std::string_view name, Kernel** out) {
  if (auto it = kernels_.find(name); it != kernels_.end()) return *out = it->second, Failure();
  for (const KernelCode& code : codes_)
    if (code.name == name) {
      if (Failure f = runtime_->load(code, out)) return f;
      counters_.kernels_loaded++;
      kernels_[code.name] = *out;
      return {};
    }
  return {Failure::Invalid, format("kernel {} was not built for this device", name)};
}

gimbal_code Device::compile(const gimbal_program& p, gimbal_executable** out) {
  const std::lock_guard lock(mutex_);
  for (DeviceBuffer** b : {&nothing_, &step_})  // here, so that nothing is allocated later
    if (!*b)
      if (Failure f = make(kSmallBytes, b)) return fail(f);
  std::unique_ptr<Executable> e;
  auto kernel_of = [this](const char* name, Kernel** kernel) { return kernel_named(name, kernel); };
  if (Failure f = Executable::make(p, rows_, limits_, kernel_of, &e)) return fail(f);
  executables_.push_back(e.get());
  *out = reinterpret_cast<gimbal_executable*>(e.release());
  return GIMBAL_OK;
}

void Device::discard(gimbal_executable* handle) {
  const std::lock_guard lock(mutex_);
  (void)settle();
  auto* e = reinterpret_cast<Executable*>(handle);
  e->forget(*runtime_, nullptr);
  std::erase(executables_, e);
  delete e;
}

Failure Device::start(Executable& e, DeviceBuffer* const* slots, size_t n, gimbal_step step) {
  Recording* recording = nullptr;
  if (Failure f = e.recording(*runtime_, slots, n, all_of(*nothing_), all_of(*step_), counters_, &recording))
    return f;
  const gimbal_step fits = e.fitting(step);
  if (fits.rows != written_.rows || fits.out_rows != written_.out_rows) {
    const int32_t words[4] = {fits.rows, fits.out_rows, 0, 0};
    if (Failure f = upload(step_->buffer, 0, words, sizeof words)) return f;
    written_ = fits;
  }
  running_ = true;
  counters_.replays++, counters_.launches += e.launches();
  const Failure f = runtime_->replay(recording);
  if (!f) e.replayed();
  return f;
}

gimbal_code Device::run_counts(gimbal_executable* handle, uint64_t* counts, size_t n) {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<Executable*>(handle)->run_counts(counts, n), GIMBAL_OK;
}

gimbal_code Device::submit(gimbal_executable* handle, gimbal_buffer* const* slots, size_t n,
                           gimbal_step step) {
  const std::lock_guard lock(mutex_);
  auto* const* buffers = reinterpret_cast<DeviceBuffer* const*>(slots);
  return fail(start(*reinterpret_cast<Executable*>(handle), buffers, n, step));
}

gimbal_code Device::wait() {
  const std::lock_guard lock(mutex_);
  return fail(settle());
}

}  // namespace gimbal::simt
