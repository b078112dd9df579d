// An open device: the thin C++ face of a backend's C table. Failures of the backend become Error values here.
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
  // `options` as the backend documents in abi.h ("threads=2\nvariant=avx2"). Errors: the backend's own words
  // and its reason (backend_words.h).
  static Result<std::unique_ptr<Device>> open(const gimbal_backend& backend, int index,
                                              const std::string& options = "");
  // Keeps the library's code in memory for as long as the device is open, also when a reload replaces it.
  static Result<std::unique_ptr<Device>> open(LibraryPtr library, int index, const std::string& options = "");
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::string id() const;  // "cpu:0"
  const char* backend() const { return table_.name; }
  const LibraryPtr& library() const { return library_; }  // may be none, see open()
  gimbal_device_info describe() const;                    // asks anew: free memory changes
  std::string features() const;                           // names of the set bits, comma-separated
  bool in_host_memory() const;                            // what it allocates is taken from the host's memory

  // The rows of the backend's kernel table, and the numbers of those that compute an op.
  size_t kernel_count() const { return kernels_.size(); }
  const gimbal_kernel_info& kernel(size_t i) const { return kernels_[i]; }
  std::span<const uint16_t> kernels_for(uint16_t op) const;

  Result<Buffer> allocate(size_t bytes) const;
  // Memory of the caller's, which must outlive the buffer, as one that is only read: nothing is copied.
  // Errors: Unsupported of a device that cannot; the backend's.
  bool can_adopt() const;
  Result<Buffer> adopt(Bytes) const;
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

  // How often each op of an executable was really run, counted by the backend where it runs. Errors:
  // Unsupported when the backend does not count.
  Result<std::vector<uint64_t>> run_counts(const Executable&, size_t n_ops) const;

  // Memory that compile() would take for a program besides its buffers; nothing is taken. Errors: the
  // backend's.
  Result<uint64_t> scratch_bytes(const gimbal_program&) const;

  // How fast its memory and its arithmetic can be at best; takes a second or two and 1 GB. Errors:
  // Unsupported when the backend cannot tell; OutOfMemory.
  Result<gimbal_limits> measure() const;

 private:
  friend class Buffer;
  friend class Executable;
  Device(const gimbal_backend& t, gimbal_device* d, int index);
  Error error(gimbal_code, const char* doing) const;

  LibraryPtr library_;  // of table_; none when it was given as such
  const gimbal_backend& table_;
  gimbal_device* device_;
  int index_;
  std::vector<gimbal_kernel_info> kernels_;  // as this program knows them, whatever the backend's version
  std::vector<uint16_t> by_op_;              // kernels, those for one op side by side
  std::vector<uint32_t> first_of_op_;        // in by_op_; one entry more than op numbers
};

}  // namespace gimbal
