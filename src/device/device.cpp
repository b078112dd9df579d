#include "device/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "device/contract.h"
#include "device/loader_lock.h"
#include "device/reason.h"
#include "ops/op.h"

namespace gimbal {

Buffer::Buffer(Buffer&& o) noexcept
    : device_(o.device_), handle_(std::exchange(o.handle_, nullptr)), size_(std::exchange(o.size_, 0)) {}
Buffer& Buffer::operator=(Buffer&& o) noexcept {
  std::swap(device_, o.device_), std::swap(handle_, o.handle_), std::swap(size_, o.size_);
  return *this;
}
Buffer::~Buffer() {
  if (handle_) device_->table_.release(device_->device_, handle_);
}

Executable::Executable(Executable&& o) noexcept
    : device_(o.device_), handle_(std::exchange(o.handle_, nullptr)) {}
Executable& Executable::operator=(Executable&& o) noexcept {
  std::swap(device_, o.device_), std::swap(handle_, o.handle_);
  return *this;
}
Executable::~Executable() {
  if (handle_) device_->table_.discard(device_->device_, handle_);
}

Result<std::unique_ptr<Device>> Device::open(const gimbal_backend& backend, int index,
                                             const std::string& options) {
  if (auto kept = check_table(&backend, "a backend"); !kept) return kept.error();
  gimbal_device* d = nullptr;
  const gimbal_code code = [&] {
    const LoaderLock loading;
    return backend.open(index, options.empty() ? nullptr : options.c_str(), &d);
  }();
  if (code != GIMBAL_OK) {
    const bool memory = code == GIMBAL_OUT_OF_MEMORY;
    Error e =
        backend_error(backend.last_error(nullptr), memory ? reason::kNotEnoughMemory : reason::kOpenFailed);
    if (memory) e.code = Code::OutOfMemory;
    e.message = format("backend '{}' could not open device {}: {}", backend.name, index, e.message);
    return e;
  }
  return std::unique_ptr<Device>(new Device(backend, d, index));
}

Result<std::unique_ptr<Device>> Device::open(LibraryPtr library, int index, const std::string& options) {
  auto device = open(library->table(), index, options);
  if (device) (*device)->library_ = std::move(library);
  return device;
}

Device::Device(const gimbal_backend& t, gimbal_device* d, int index) : table_(t), device_(d), index_(index) {
  read_kernels();
}

// Fields beyond a shorter row of an older backend are 0: not claimed.
void Device::read_kernels() {
  size_t count = 0, stride = 0;
  const auto* rows = [&] {
    const LoaderLock first_use;  // a plugin may build its rows on this call
    return reinterpret_cast<const char*>(table_.kernels(device_, &count, &stride));
  }();
  kernels_.assign(rows ? std::min<size_t>(count, UINT16_MAX) : 0, {});
  first_of_op_.assign(kOpNumbers + 1, 0);
  for (size_t i = 0; i < kernels_.size(); i++) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, rows + i * stride, sizeof bytes);
    std::memcpy(&kernels_[i], rows + i * stride, std::min<size_t>(bytes, sizeof(gimbal_kernel_info)));
    if (kernels_[i].op < kOpNumbers) first_of_op_[size_t(kernels_[i].op) + 1]++;
  }
  for (size_t op = 0; op < kOpNumbers; op++) first_of_op_[op + 1] += first_of_op_[op];
  by_op_.resize(first_of_op_[kOpNumbers]);
  std::vector<uint32_t> next = first_of_op_;
  for (size_t i = 0; i < kernels_.size(); i++)
    if (kernels_[i].op < kOpNumbers) by_op_[next[kernels_[i].op]++] = uint16_t(i);
}

std::span<const uint16_t> Device::kernels_for(uint16_t op) const {
  if (op >= kOpNumbers) return {};
  return std::span(by_op_).subspan(first_of_op_[op], first_of_op_[size_t(op) + 1] - first_of_op_[op]);
}
Device::~Device() {
  const LoaderLock unloading;
  table_.close(device_);
}

std::string Device::id() const { return format("{}:{}", table_.name, index_); }

gimbal_device_info Device::describe() const {
  gimbal_device_info info{};
  info.struct_size = sizeof info;
  table_.describe(device_, &info);
  return info;
}

std::string Device::features() const {
  gimbal_device_info i = describe();
  std::string out;
  for (int bit = 0; i.feature_names && i.feature_names[bit]; bit++)
    if (i.features >> bit & 1) out += (out.empty() ? "" : ", ") + std::string(i.feature_names[bit]);
  return out;
}

bool Device::in_host_memory() const {
  const gimbal_device_info i = describe();
  return i.software || i.unified_memory || i.threads > 0;
}

Error Device::error(gimbal_code code, const char* doing) const {
  static constexpr Code kCodes[] = {Code::Failed, Code::Unsupported, Code::OutOfMemory, Code::DeviceLost,
                                    Code::Failed};
  const char* why = table_.last_error(device_);
  return {kCodes[code <= GIMBAL_INVALID ? code : GIMBAL_INVALID],
          format("device {}: {}: {}", id(), doing, why && *why ? why : "no reason given"), ""};
}

// Optional functions are last, and an older backend's table may end before them.
template <class Function>
static bool offers(const gimbal_backend& table, Function gimbal_backend::*function) {
  const auto at = reinterpret_cast<const char*>(&(table.*function)) - reinterpret_cast<const char*>(&table);
  return table.struct_size >= size_t(at) + sizeof(Function) && table.*function;
}

Result<Buffer> Device::allocate(size_t bytes) const {
  gimbal_buffer* b = nullptr;
  if (auto code = table_.alloc(device_, bytes, &b); code != GIMBAL_OK)
    return error(code, format("could not allocate {}", human_bytes(bytes)).c_str());
  return Buffer(this, b, bytes);
}

bool Device::can_adopt() const { return offers(table_, &gimbal_backend::adopt); }

Result<Buffer> Device::adopt(Bytes memory) const {
  if (!can_adopt())
    return Error{Code::Unsupported, format("device {} cannot compute from host memory", id()), ""};
  gimbal_buffer* b = nullptr;
  if (auto code = table_.adopt(device_, memory.data(), memory.size(), &b); code != GIMBAL_OK)
    return error(code, "could not import host memory");
  return Buffer(this, b, memory.size());
}

void* Device::host_pointer(const Buffer& b) const {
  return offers(table_, &gimbal_backend::host_pointer) ? table_.host_pointer(device_, b.handle()) : nullptr;
}

Status Device::add_kernel(const gimbal_host_kernel& kernel) {
  if (!offers(table_, &gimbal_backend::add_kernel))
    return Error{Code::Unsupported, format("device {} takes no kernels of the program that uses it", id()),
                 ""};
  if (auto code = table_.add_kernel(device_, &kernel); code != GIMBAL_OK)
    return error(code, "could not add a kernel");
  read_kernels();
  return Done{};
}

Status Device::write(Buffer& b, size_t offset, const void* p, size_t n) const {
  if (offset > b.size() || n > b.size() - offset)
    return Error{Code::Failed, "write beyond the end of a buffer", ""};
  if (auto code = table_.write(device_, b.handle(), offset, p, n); code != GIMBAL_OK)
    return error(code, "write failed");
  return Done{};
}

Status Device::read(const Buffer& b, size_t offset, void* p, size_t n) const {
  if (offset > b.size() || n > b.size() - offset)
    return Error{Code::Failed, "read beyond the end of a buffer", ""};
  if (auto code = table_.read(device_, b.handle(), offset, p, n); code != GIMBAL_OK)
    return error(code, "read failed");
  return Done{};
}

std::optional<uint64_t> Device::packed_bytes(const Shape& m) const {
  uint64_t n = table_.packed_bytes(device_, uint8_t(m.type), m.dim[0], m.dim[1]);
  return n ? std::optional(n) : std::nullopt;
}

Status Device::pack(Buffer& b, const gimbal_value& v, const void* source, int64_t begin, int64_t end) const {
  if (auto code = table_.pack(device_, b.handle(), &v, source, begin, end); code != GIMBAL_OK)
    return error(code, "packing weights failed");
  return Done{};
}

uint64_t Device::cache_bytes(DType t, bool is_key, int64_t head_dim, int64_t heads, int64_t page,
                             int64_t pages) const {
  return table_.cache_bytes(device_, uint8_t(t), is_key, head_dim, heads, page, pages);
}

Result<Executable> Device::compile(const gimbal_program& p) const {
  gimbal_executable* e = nullptr;
  if (auto code = table_.compile(device_, &p, &e); code != GIMBAL_OK)
    return error(code, "could not prepare a program");
  return Executable(this, e);
}

Status Device::submit(Executable& e, gimbal_buffer* const* slots, size_t n_slots, gimbal_step step) const {
  if (auto code = table_.submit(device_, e.handle(), slots, n_slots, step); code != GIMBAL_OK)
    return error(code, "computing failed");
  return Done{};
}

Status Device::wait() const {
  if (auto code = table_.wait(device_); code != GIMBAL_OK) return error(code, "computing failed");
  return Done{};
}

Result<std::vector<uint64_t>> Device::run_counts(const Executable& e, size_t n_ops) const {
  if (!offers(table_, &gimbal_backend::run_counts))
    return Error{Code::Unsupported, format("device {} does not count kernel runs", id()), ""};
  std::vector<uint64_t> counts(n_ops);
  if (auto code = table_.run_counts(device_, e.handle(), counts.data(), n_ops); code != GIMBAL_OK)
    return error(code, "reading the kernel counts failed");
  return counts;
}

Result<uint64_t> Device::scratch_bytes(const gimbal_program& p) const {
  uint64_t bytes = 0;
  if (!offers(table_, &gimbal_backend::scratch_bytes)) return bytes;
  if (auto code = table_.scratch_bytes(device_, &p, &bytes); code != GIMBAL_OK)
    return error(code, "could not plan a program");
  return bytes;
}

Result<gimbal_limits> Device::measure() const {
  if (!offers(table_, &gimbal_backend::measure))
    return Error{Code::Unsupported, format("device {} cannot measure its limits", id()), ""};
  gimbal_limits limits{};
  limits.struct_size = sizeof limits;
  if (auto code = table_.measure(device_, &limits); code != GIMBAL_OK)
    return error(code, "measuring its limits failed");
  return limits;
}

}  // namespace gimbal
