// Device memory. Unified memory (Apple silicon, Intel's integrated GPUs) is accessed directly; a discrete
// card's memory through a ring of staging buffers.
#pragma once
#include "backends/metal/queue.h"

namespace gimbal::metal {

struct MetalBuffer : gpu::Buffer {
  Owned<id<MTLBuffer>> memory;
  uint64_t bytes = 0;       // as requested; Metal's are a multiple of 4
  uint8_t* seen = nullptr;  // mapped address; nullptr if the CPU cannot access it
};

class Memory {
 public:
  // `staging`: copy as on a discrete card even if memory is unified.
  Memory(id<MTLDevice> device, Queue& queue, bool staging);

  uint64_t total() const;
  uint64_t free() const;

  Failure allocate(uint64_t bytes, MetalBuffer** out);  // zeroed
  void release(MetalBuffer*);
  // Ranges within the buffer. Work submitted before a write() still reads the old contents.
  Failure write(MetalBuffer&, uint64_t offset, const void* data, uint64_t bytes);
  Failure read(MetalBuffer&, uint64_t offset, void* data, uint64_t bytes);

 private:
  static constexpr uint64_t kPieceBytes = 2 << 20;
  static constexpr int kPieces = 4;
  struct Piece {
    uint8_t* at = nullptr;
    uint64_t offset = 0;  // in the ring
    Owned<id<MTLCommandBuffer>> user;
  };
  struct Part;

  Failure make(uint64_t bytes, bool shared, Owned<id<MTLBuffer>>* out);
  Failure clear(MetalBuffer&);
  Failure next_piece(Piece** out);
  Failure copy(Piece&, MetalBuffer&, const Part&, bool to_the_buffer);
  template <class Visit>
  Failure in_parts(uint64_t offset, uint64_t bytes, Visit visit);

  const Owned<id<MTLDevice>> device_;
  Queue& queue_;
  const bool shared_;
  Owned<id<MTLBuffer>> ring_;
  Piece pieces_[kPieces];
  int next_ = 0;
};

}  // namespace gimbal::metal
