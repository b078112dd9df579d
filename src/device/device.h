// An open device: a thin C++ wrapper of a backend's C table that turns backend failures into Error values.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "device/abi.h"
#include "device/library.h"
#include "tensor/shape.h"

namespace gimbal {

class Device;

// Memory on a device, zeroed when allocated. Owns it; must not outlive its device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& o) noexcept;
  Buffer& operator=(Buffer&& o) noexcept;
  ~Buffer();
  size_t size() const { return size_; }
  gimbal_buffer* handle() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  friend class Device;
  Buffer(const Device* d, gimbal_buffer* h, size_t n) : device_(d), handle_(h), size_(n) {}
  const Device* device_ = nullptr;
  gimbal_buffer* handle_ = nullptr;
  size_t size_ = 0;
};

// A compiled program. Owns it; must not outlive its device.
class Executable {
 public:
  Executable() = default;
  Executable(Executable&& o) noexcept;
  Executable& operator=(Executable&& o) noexcept;
  ~Executable();
  gimbal_executable* handle() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  friend class Device;
  Executable(const Device* d, gimbal_executable* h) : device_(d), handle_(h) {}
  const Device* device_ = nullptr;
  gimbal_executable* handle_ = nullptr;
};

class Device {
 public:
  // `options`: as documented by the backend in abi.h ("threads=2\nvariant=avx2"). Errors: the backend's text
  // and reason (contract.h).
  static Result<std::unique_ptr<Device>> open(const gimbal_backend& backend, int index,
                                              const std::string& options = "");
  // Keeps the library loaded as long as the device is open, even if a reload replaces it.
  static Result<std::unique_ptr<Device>> open(LibraryPtr library, int index, const std::string& options = "");
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::string id() const;  // "cpu:0"
  const char* backend() const { return table_.name; }
  const LibraryPtr& library() const { return library_; }  // null if opened from a table
  gimbal_device_info describe() const;                    // queried on each call: free memory changes
  std::string features() const;                           // names of the set bits, comma-separated
  bool in_host_memory() const;                            // allocates from host memory

  // The backend's kernels, and the indices of those that compute an op.
  size_t kernel_count() const { return kernels_.size(); }
  const gimbal_kernel_info& kernel(size_t i) const { return kernels_[i]; }
  std::span<const uint16_t> kernels_for(uint16_t op) const;

  Result<Buffer> allocate(size_t bytes) const;
  // A read-only buffer over the caller's memory, without a copy. The memory must outlive the buffer. Errors:
  // Unsupported if the device cannot; those of the backend.
  bool can_adopt() const;
  Result<Buffer> adopt(Bytes) const;
  // See abi.h; null if the host cannot reach the buffer.
  void* host_pointer(const Buffer&) const;
  // Appends a kernel of the host's to the table: see abi.h. Errors: Unsupported if the device cannot; those
  // of the backend.
  Status add_kernel(const gimbal_host_kernel&);
  Status write(Buffer&, size_t offset, const void*, size_t) const;
  Status read(const Buffer&, size_t offset, void*, size_t) const;

  // See abi.h. nullopt: the device has no packed layout for this format.
  std::optional<uint64_t> packed_bytes(const Shape& matrix) const;
  Status pack(Buffer&, const gimbal_value&, const void* source, int64_t begin, int64_t end) const;
  uint64_t cache_bytes(DType, bool is_key, int64_t head_dim, int64_t heads, int64_t page,
                       int64_t pages) const;

  Result<Executable> compile(const gimbal_program&) const;
  Status submit(Executable&, gimbal_buffer* const* slots, size_t n_slots, gimbal_step) const;
  Status wait() const;

  // Executions of each op of an executable, counted by the backend at run time. Errors: Unsupported if the
  // backend does not count.
  Result<std::vector<uint64_t>> run_counts(const Executable&, size_t n_ops) const;

  // Memory that compile() would allocate for a program besides its buffers; allocates nothing. Errors: those
  // of the backend.
  Result<uint64_t> scratch_bytes(const gimbal_program&) const;

  // Peak memory bandwidth and arithmetic throughput (roofline); takes a second or two and 1 GB. Errors:
  // Unsupported if the backend cannot measure; OutOfMemory.
  Result<gimbal_limits> measure() const;

 private:
  friend class Buffer;
  friend class Executable;
  Device(const gimbal_backend& t, gimbal_device* d, int index);
  Error error(gimbal_code, const char* doing) const;
  void read_kernels();

  LibraryPtr library_;  // of table_; null if opened from a table
  const gimbal_backend& table_;
  gimbal_device* device_;
  int index_;
  std::vector<gimbal_kernel_info> kernels_;  // at this program's version, regardless of the backend's
  std::vector<uint16_t> by_op_;              // kernels, grouped by op
  std::vector<uint32_t> first_of_op_;        // index into by_op_; has one entry more than op numbers
};

}  // namespace gimbal
