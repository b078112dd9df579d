// Buffers of a device, and how their contents come and go: written directly where host and device share
// memory, else copied through a ring of pieces that the host can write.
#pragma once
#include "backends/vulkan/gpu.h"

namespace gimbal::vulkan {

struct GpuBuffer : simt::Buffer {
  VkBuffer handle = nullptr;
  VkDeviceMemory memory = nullptr;
  uint64_t bytes = 0;         // that were asked for
  uint64_t allocated = 0;     // that it took
  uint8_t* mapped = nullptr;  // nullptr: the host cannot reach it
  bool cached = false;        // the host reads it fast
};

class Memory {
 public:
  // `staging`: as if the host could reach no buffer.
  Memory(Gpu& gpu, bool staging);
  ~Memory();
  Memory(const Memory&) = delete;

  uint64_t total() const;
  uint64_t free()
      const;  // as the driver sees it now; without VK_EXT_memory_budget: what we have not allocated

  Failure allocate(uint64_t bytes, GpuBuffer** out);  // zeroed
  void release(GpuBuffer*);
  Failure write(GpuBuffer&, uint64_t offset, const void* data, uint64_t bytes);
  Failure read(GpuBuffer&, uint64_t offset, void* data, uint64_t bytes);

 private:
  struct Piece {  // of the ring: a command buffer and kPieceBytes
    VkCommandBuffer commands = nullptr;
    uint64_t submission = 0;  // free again when this has ended
    uint64_t offset = 0;
  };
  static constexpr int kPieces = 4;
  static constexpr uint64_t kPieceBytes = 2 << 20;

  // The first memory type of `bits` that has all of `wanted` and none of `unwanted`; -1: none.
  int type(uint32_t bits, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags unwanted = 0) const;
  int type_of_buffers(uint32_t bits) const;
  Failure make(uint64_t bytes, bool for_host, GpuBuffer* out);
  void drop(GpuBuffer&);
  Failure clear(GpuBuffer&);
  Failure next_piece(Piece** out);  // its commands begun, behind everything submitted
  Failure finish(Piece&);           // and off it goes

  Gpu& gpu_;
  const VkPhysicalDeviceMemoryProperties types_;
  const bool shared_;  // host and device use the same memory
  uint64_t allocated_ = 0;
  GpuBuffer ring_;
  Piece pieces_[kPieces];
  int next_ = 0;
};

}  // namespace gimbal::vulkan
