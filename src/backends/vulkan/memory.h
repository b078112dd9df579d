// Buffers and data transfer: direct access where host and device share memory, else copies through a ring of
// host-visible staging buffers.
#pragma once
#include "backends/vulkan/gpu.h"

namespace gimbal::vulkan {

struct GpuBuffer : gpu::Buffer {
  VkBuffer handle = nullptr;
  VkDeviceMemory memory = nullptr;
  uint64_t bytes = 0;         // requested
  uint64_t allocated = 0;     // allocated
  uint8_t* mapped = nullptr;  // nullptr: not accessible to the host
  bool cached = false;        // fast host reads
};

class Memory {
 public:
  // `staging`: as if no buffer were accessible to the host.
  Memory(Gpu& gpu, bool staging);
  ~Memory();
  Memory(const Memory&) = delete;

  uint64_t total() const;
  uint64_t free()
      const;  // as reported by the driver; without VK_EXT_memory_budget: memory that we have not allocated

  Failure allocate(uint64_t bytes, GpuBuffer** out);  // zeroed
  void release(GpuBuffer*);
  Failure write(GpuBuffer&, uint64_t offset, const void* data, uint64_t bytes);
  Failure read(GpuBuffer&, uint64_t offset, void* data, uint64_t bytes);

 private:
  struct Piece {  // of the ring: a command buffer and kPieceBytes
    VkCommandBuffer commands = nullptr;
    uint64_t submission = 0;  // free again once this has ended
    uint64_t offset = 0;
  };
  static constexpr int kPieces = 4;
  static constexpr uint64_t kPieceBytes = 2 << 20;

  // The first memory type of `bits` with all `wanted` and no `unwanted` flags; -1: none.
  int type(uint32_t bits, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags unwanted = 0) const;
  int type_of_buffers(uint32_t bits) const;
  Failure make(uint64_t bytes, bool for_host, GpuBuffer* out);
  void drop(GpuBuffer&);
  Failure clear(GpuBuffer&);
  Failure next_piece(Piece** out);          // begins its commands, after all submitted work
  Failure next_piece_of_ring(Piece** out);  // the same, with its bytes
  Failure finish(Piece&);                   // submits it

  Gpu& gpu_;
  const VkPhysicalDeviceMemoryProperties types_;
  const bool shared_;  // host and device share memory
  uint64_t allocated_ = 0;
  GpuBuffer ring_;
  Piece pieces_[kPieces];
  int next_ = 0;
};

}  // namespace gimbal::vulkan
