// Buffers and data transfer. WebGPU copies whole words only.
#pragma once
#include "backends/webgpu/gpu.h"

namespace gimbal::webgpu {

struct DeviceBuffer : gpu::Buffer {
  OwnedBuffer handle;
  uint64_t bytes = 0, taken = 0;  // as requested; as allocated
};

class Memory {
 public:
  explicit Memory(Gpu& gpu) : gpu_(gpu) {}

  Failure start();  // allocates the staging buffer of read()
  uint64_t allocated() const { return allocated_; }

  Failure allocate(uint64_t bytes, DeviceBuffer** out);  // zeroed
  void release(DeviceBuffer*);
  Failure write(DeviceBuffer&, uint64_t offset, const void* data, uint64_t bytes);
  Failure read(DeviceBuffer&, uint64_t offset, void* data, uint64_t bytes);

  OwnedBuffer make(uint64_t bytes, uint64_t usage);  // errors go to the open error scope

 private:
  static constexpr uint64_t kPieceBytes = 4 << 20;  // per read
  // The library buffers written data until the device has it: beyond this much, write() waits.
  static constexpr uint64_t kMaxInFlight = 64 << 20;

  Failure write_words(DeviceBuffer&, uint64_t offset, const void* data, uint64_t bytes);
  Failure read_piece(DeviceBuffer&, uint64_t offset, void* data, uint64_t bytes);

  Gpu& gpu_;
  OwnedBuffer landing_;  // staging buffer for reads
  uint64_t allocated_ = 0, on_the_way_ = 0;
};

}  // namespace gimbal::webgpu
