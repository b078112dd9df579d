// Memory of a device for tensors. Blocks that are free again are kept by size for later ones: fresh memory
// costs more than most operations. A queue works in order, so a block may be used again at once.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace gimbal {

class MemoryPool;

// Memory of a tensor and of its views. Goes back to its pool at its end. With an owner it is the caller's
// memory, which is never written: it is let go instead.
class Block {
 public:
  Block(std::shared_ptr<MemoryPool> pool, Buffer buffer, void* host, std::shared_ptr<const void> owner = {})
      : pool_(std::move(pool)), owner_(std::move(owner)), buffer_(std::move(buffer)), host_(host) {}
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Buffer& buffer() { return buffer_; }
  void* host() const { return host_; }  // null where the host cannot reach it
  bool read_only() const { return owner_ != nullptr; }

 private:
  std::shared_ptr<MemoryPool> pool_;
  std::shared_ptr<const void> owner_;
  Buffer buffer_;
  void* host_;
};

// Thread-safe. Shared with its blocks, so that they may outlive the queue; owns the device for the same
// reason.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  MemoryPool(std::unique_ptr<Device> device, uint64_t limit) : device_(std::move(device)), limit_(limit) {}
  Device& device() const { return *device_; }

  // The contents are whatever was there. Errors: OutOfMemory beyond the limit, or the device's, after the
  // kept blocks were given back.
  Result<std::shared_ptr<Block>> allocate(uint64_t bytes);
  // Over the caller's memory, from the page that `memory` begins in. Counts as none of the pool's. Errors:
  // Unsupported if the device cannot.
  Result<std::shared_ptr<Block>> adopt(Bytes memory, std::shared_ptr<const void> owner);
  void trim();
  struct Stats {
    uint64_t live, cached, peak;
  };
  Stats stats() const;

 private:
  friend class Block;
  void take_back(Buffer);
  void give_back_all();

  std::unique_ptr<Device> device_;
  const uint64_t limit_;  // 0: none
  mutable std::mutex mutex_;
  std::array<std::vector<Buffer>, 8 * 64> kept_;  // by size class: eight to a doubling
  uint64_t live_ = 0, cached_ = 0, peak_ = 0;
};

}  // namespace gimbal
