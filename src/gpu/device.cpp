#include "gpu/device.h"

#include <algorithm>

#include "base/format.h"
#include "gpu/limits.h"
#include "gpu/tensors/launches.h"
#include "gpu/text/kernel_text.h"
#include "packing/layout.h"
#include "packing/pack.h"

namespace gimbal::gpu {
namespace {

constexpr uint64_t kSmallBytes = 256;  // of the buffers that every launch binds

DeviceBuffer& buffer(gimbal_buffer* b) { return *reinterpret_cast<DeviceBuffer*>(b); }
Binding all_of(const DeviceBuffer& b) { return {b.pieces[0].buffer, 0, b.bytes}; }
const char* text_or_null(const std::string& s) { return s.empty() ? nullptr : s.c_str(); }

}  // namespace

Device::Device(const char* backend, Opened opened, const Least& most)
    : runtime_(std::move(opened.runtime)),
      codes_(opened.kernels),
      matrix_codes_(opened.matrix_kernels),
      tensor_codes_(opened.tensor_kernels),
      text_codes_(opened.text_kernels),
      rows_(make_rows(backend, !opened.matrix_kernels.empty(), !opened.tensor_kernels.empty())) {
  static_cast<Facts&>(limits_) = runtime_->facts();
  limits_.max_binding_bytes = std::min(limits_.max_binding_bytes, most.binding);
  limits_.max_allocation_bytes =
      std::max(std::min(limits_.max_allocation_bytes, most.allocation), kMinAllocation) / kPieceAlignment *
      kPieceAlignment;
  limits_.part_bytes = most.part;
}

Device::~Device() {
  if (!executables_.empty() || nothing_) (void)runtime_->wait();
  for (DeviceBuffer* b : {nothing_, step_})
    if (b) free_pieces(*b), delete b;
}

ErrorText& Device::error() {
  thread_local ErrorText text;
  return text;
}

gimbal_code Device::fail(const Failure& f) {
  static constexpr gimbal_code kCodes[] = {GIMBAL_OK, GIMBAL_UNSUPPORTED, GIMBAL_OUT_OF_MEMORY,
                                           GIMBAL_DEVICE_LOST, GIMBAL_INVALID};
  // Lines, as device/contract.h reads them.
  if (f) error() = *f.reason ? f.text + "\n" + f.reason : f.text;
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
  i.driver = text_or_null(limits_.driver), i.pci_id = text_or_null(limits_.pci_id);
  i.compute_capability = text_or_null(limits_.compute_capability);
}

const gimbal_kernel_info* Device::rows(size_t* n, size_t* stride) {
  *n = rows_.rows.size(), *stride = sizeof(Row);
  return &rows_.rows[0].info;
}

// ---- memory
Failure Device::make(uint64_t bytes, DeviceBuffer** out) {
  auto b = std::make_unique<DeviceBuffer>();
  b->bytes = uint64_t(packing::up(int64_t(std::max<uint64_t>(bytes, 1)), int64_t(kSmallBytes)));
  if (b->bytes > limits_.max_allocation_bytes) {
    if (const uint64_t free = runtime_->facts().memory_free; b->bytes > free)
      return {Failure::OutOfMemory, format("{} bytes requested, {} are free", b->bytes, free)};
    pending_.push_back(b.get());
  } else if (Failure f = make_pieces(*b, {})) {
    return f;
  }
  *out = b.release();
  return {};
}

Failure Device::make_pieces(DeviceBuffer& b, std::span<const uint64_t> cuts) {
  std::erase(pending_, &b);
  Failure f;
  for (size_t i = 0; i <= cuts.size() && !f; i++) {
    const uint64_t begin = i ? cuts[i - 1] : 0, end = i < cuts.size() ? cuts[i] : b.bytes;
    DeviceBuffer::Piece piece{begin / kPieceAlignment * kPieceAlignment, begin, end, nullptr};
    f = runtime_->allocate(DeviceBuffer::size_of(piece), &piece.buffer);
    if (!f) b.pieces.push_back(piece), counters_.allocations++;
  }
  if (f) free_pieces(b), pending_.push_back(&b);
  return f;
}

void Device::free_pieces(DeviceBuffer& b) {
  for (const DeviceBuffer::Piece& p : b.pieces) runtime_->release(p.buffer);
  b.pieces.clear();
}

// Pending buffers get memory when the next program is compiled: each belongs to the slot with its size, apart
// from a few bytes for alignment and guards.
Failure Device::make_pending(const Cuts& cuts) {
  constexpr uint64_t kMaxSpare = 4096;
  std::vector<bool> taken(cuts.slots().size());
  for (DeviceBuffer* b : std::vector(pending_)) {
    size_t best = taken.size();
    for (size_t s = 0; s < taken.size(); s++) {
      const uint64_t extent = cuts.slots()[s].extent;
      if (!taken[s] && !cuts.slots()[s].where.empty() && extent <= b->bytes &&
          b->bytes - extent <= kMaxSpare && (best == taken.size() || extent > cuts.slots()[best].extent))
        best = s;
    }
    if (best == taken.size()) continue;
    taken[best] = true;
    if (Failure f = make_pieces(*b, cuts.slots()[best].where)) return f;
  }
  return {};
}

Failure Device::made(DeviceBuffer& b) {
  return b.pieces.empty() ? make_pieces(b, blind_cuts(b.bytes, limits_.max_allocation_bytes)) : Failure();
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
  free_pieces(buffer(b));
  std::erase(pending_, &buffer(b));
  delete &buffer(b);
}

Failure Device::settle() {
  if (!running_) return {};
  running_ = false;
  return runtime_->wait();
}

namespace {
// Calls with every piece of a range: its buffer, the offset there, the part's first byte in the range, and
// how many.
template <class Call>
Failure each_piece(const DeviceBuffer& b, uint64_t offset, uint64_t bytes, Call call) {
  if (offset > b.bytes || bytes > b.bytes - offset)
    return {Failure::Invalid, format("bytes {} to {} of a buffer of {}", offset, offset + bytes, b.bytes)};
  for (const DeviceBuffer::Piece& p : b.pieces) {
    const uint64_t begin = std::max(offset, p.begin), end = std::min(offset + bytes, p.end);
    if (begin >= end) continue;
    if (Failure f = call(p.buffer, begin - p.base, begin - offset, end - begin)) return f;
  }
  return {};
}
}  // namespace

Failure Device::upload(DeviceBuffer& b, uint64_t offset, const void* data, uint64_t bytes) {
  if (Failure f = settle()) return f;
  if (Failure f = made(b)) return f;
  counters_.uploads++, counters_.uploaded_bytes += bytes;
  return each_piece(b, offset, bytes, [&](Buffer* piece, uint64_t at, uint64_t first, uint64_t n) {
    return runtime_->write(piece, at, static_cast<const uint8_t*>(data) + first, n);
  });
}

gimbal_code Device::write(gimbal_buffer* b, size_t offset, const void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  return bytes ? fail(upload(buffer(b), offset, data, bytes)) : GIMBAL_OK;
}

gimbal_code Device::read(gimbal_buffer* b, size_t offset, void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  counters_.downloads++, counters_.downloaded_bytes += bytes;
  if (!bytes) return GIMBAL_OK;
  if (Failure f = made(buffer(b))) return fail(f);
  return fail(
      each_piece(buffer(b), offset, bytes, [&](Buffer* piece, uint64_t at, uint64_t first, uint64_t n) {
        return runtime_->read(piece, at, static_cast<uint8_t*>(data) + first, n);
      }));
}

uint64_t Device::packed_bytes(uint8_t type, int64_t columns, int64_t rows) {
  return uint64_t(packing::packed_bytes(DType(type), columns, rows));
}

// The rows are packed on the host, by the calling thread, and then written.
gimbal_code Device::pack(gimbal_buffer* b, const gimbal_value& v, const void* source, int64_t begin,
                         int64_t end) {
  const auto type = DType(v.dtype);
  const uint64_t tile = uint64_t(packing::tile_bytes(type, v.dim[0]));
  const int64_t last = std::min(end, v.dim[1]);
  if (begin >= last) return GIMBAL_OK;
  std::vector<uint8_t> tiles(uint64_t(last - begin + packing::kTileRows - 1) / packing::kTileRows * tile);
  packing::pack_tiles(type, v.dim[0], v.dim[1], static_cast<const uint8_t*>(source), tiles.data(), begin,
                      last);
  return write(b, v.offset + uint64_t(begin / packing::kTileRows) * tile, tiles.data(), tiles.size());
}

uint64_t Device::cache_bytes(uint8_t type, uint8_t is_key, int64_t head_dim, int64_t heads, int64_t,
                             int64_t pages) {
  return uint64_t(packing::cache_bytes(DType(type), is_key, head_dim, heads, pages));
}

// ---- programs
Failure Device::kernel_named(std::string_view name, Kernel** out) {
  if (auto it = kernels_.find(name); it != kernels_.end()) return *out = it->second, Failure();
  for (const auto& codes : {codes_, matrix_codes_, tensor_codes_})
    for (const KernelCode& code : codes) {
      if (code.name != name) continue;
      KernelCode unpacked;
      if (Failure f = unpacker_.unpack(code, &unpacked)) return f;
      if (Failure f = runtime_->load(unpacked, out)) return f;
      counters_.kernels_loaded++;
      kernels_[code.name] = *out;
      return {};
    }
  return {Failure::Invalid, format("kernel {} was not built for this device", name)};
}

gimbal_code Device::add_kernel(const gimbal_host_kernel& k) {
  const std::lock_guard lock(mutex_);
  return fail(add_text(k));
}

Failure Device::add_text(const gimbal_host_kernel& k) {
  if (!k.text) return {Failure::Unsupported, "it has a function for the CPU, and no kernel text"};
  if (text_codes_.empty()) return {Failure::Unsupported, "this backend compiles no kernel texts at run time"};
  KernelCode code;
  std::string text;
  auto compiled = std::make_unique<std::vector<uint8_t>>();
  if (Failure f = unpacker_.unpack(text_codes_[0], &code)) return f;
  const std::string_view frame(reinterpret_cast<const char*>(code.code.data()), code.code.size());
  if (Failure f = complete_text(frame, k.text, &text)) return f;
  if (Failure f = runtime_->compile(text, compiled.get())) return f;
  code.code = *texts_.emplace_back(std::move(compiled));
  Kernel* loaded = nullptr;
  if (Failure f = runtime_->load(code, &loaded)) {
    if (f.code == Failure::Unsupported) f.code = Failure::Invalid;  // the text is wrong, not the device
    return f;
  }
  counters_.kernels_loaded++;
  kernels_[k.text] = loaded;  // not by name: several operations may have one
  rows_.rows.push_back(custom_row(rows_, k.info));
  return {};
}

gimbal_code Device::compile(const gimbal_program& p, gimbal_executable** out) {
  const std::lock_guard lock(mutex_);
  // Here, so that nothing is allocated later.
  for (auto [b, bytes] : {std::pair(&nothing_, kMaxBindings * kSmallBytes), {&step_, kSmallBytes}})
    if (!*b)
      if (Failure f = make(bytes, b)) return fail(f);
  std::unique_ptr<Executable> e;
  Cuts cuts;
  if (Failure f = Cuts::find(p, limits_.max_allocation_bytes, &cuts)) return fail(f);
  if (Failure f = make_pending(cuts)) return fail(f);
  auto kernel_of = [this](const char* name, Kernel** kernel) { return kernel_named(name, kernel); };
  if (Failure f = Executable::make(p, rows_, limits_, cuts, kernel_of, &e)) return fail(f);
  if (e->scratch_bytes())
    if (Failure f = make(e->scratch_bytes(), &e->scratch)) return fail(f);
  if (const auto words = e->constant_words(); !words.empty()) {
    if (Failure f = make(words.size_bytes(), &e->constants)) return fail(f);
    if (Failure f = upload(*e->constants, 0, words.data(), words.size_bytes())) return fail(f);
  }
  executables_.push_back(e.get());
  *out = reinterpret_cast<gimbal_executable*>(e.release());
  return GIMBAL_OK;
}

void Device::discard(gimbal_executable* handle) {
  const std::lock_guard lock(mutex_);
  (void)settle();
  auto* e = reinterpret_cast<Executable*>(handle);
  e->forget(*runtime_, nullptr);
  for (DeviceBuffer* b : {e->scratch, e->constants})
    if (b) free_pieces(*b), delete b;
  std::erase(executables_, e);
  delete e;
}

Failure Device::start(Executable& e, DeviceBuffer* const* slots, size_t n, gimbal_step step) {
  Recording* recording = nullptr;
  for (size_t i = 0; i < n; i++)
    if (slots[i])
      if (Failure f = made(*slots[i])) return f;
  if (Failure f = e.recording(*runtime_, slots, n, all_of(*nothing_), all_of(*step_), counters_, &recording))
    return f;
  const gimbal_step fits = e.fitting(step);
  if (fits.rows != written_.rows || fits.out_rows != written_.out_rows) {
    const int32_t words[4] = {fits.rows, fits.out_rows, 0, 0};
    if (Failure f = upload(*step_, 0, words, sizeof words)) return f;
    written_ = fits;
  }
  running_ = true;
  counters_.replays++, counters_.launches += e.launches();
  const Failure f = runtime_->replay(recording);
  if (!f) e.replayed();
  return f;
}

gimbal_code Device::measure(gimbal_limits& out) {
  const std::lock_guard lock(mutex_);
  if (Failure f = settle()) return fail(f);
  auto named = [this](std::string_view name, Kernel** kernel) { return kernel_named(name, kernel); };
  return fail(measure_limits(*runtime_, named, !matrix_codes_.empty(), &out));
}

gimbal_code Device::run_counts(gimbal_executable* handle, uint64_t* counts, size_t n) {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<Executable*>(handle)->run_counts(counts, n), GIMBAL_OK;
}

gimbal_code Device::scratch_bytes(const gimbal_program& p, uint64_t* out) {
  Cuts cuts;
  if (Failure f = Cuts::find(p, limits_.max_allocation_bytes, &cuts)) return fail(f);
  return fail(Executable::plan_scratch(p, rows_, limits_, cuts, out));
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

}  // namespace gimbal::gpu
