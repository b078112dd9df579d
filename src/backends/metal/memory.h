// Device memory. What GPU and CPU share (Apple silicon, Intel's own GPUs) is written and read directly; a
// card's own memory through a ring of pieces that both see.
#pragma once
#include "backends/metal/queue.h"

namespace gimbal::metal {

struct MetalBuffer : simt::Buffer {
  Owned<id<MTLBuffer>> memory;
  uint64_t bytes = 0;       // as asked for; Metal's are a multiple of 4
  uint8_t* seen = nullptr;  // where the CPU sees it; nullptr when it does not
};

class Memory {
 public:
  // `staging`: as on a card of its own, also where memory is shared.
  Memory(id<MTLDevice> device, Queue& queue, bool staging);

  uint64_t total() const;
  uint64_t free() const;

  Failure allocate(uint64_t bytes, MetalBuffer** out);  // zeroed
  void release(MetalBuffer*);
  // Ranges inside of the buffer. What was submitted before still reads what was there before a write().
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
