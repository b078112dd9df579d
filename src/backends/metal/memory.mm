#include "backends/metal/memory.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/format.h"

namespace gimbal::metal {

// Of a range that is copied: whole words, since macOS copies nothing smaller, and the bytes that count.
struct Memory::Part {
  uint64_t begin, words_bytes;  // in the buffer
  uint64_t skip, bytes, done;   // the first that counts; how many; how many were in parts before
  bool whole() const { return skip == 0 && bytes == words_bytes; }
};

Memory::Memory(id<MTLDevice> device, Queue& queue, bool staging)
    : device_(Owned<id<MTLDevice>>::also(device)),
      queue_(queue),
      shared_([device hasUnifiedMemory] && !staging) {}

uint64_t Memory::total() const { return [device_.get() recommendedMaxWorkingSetSize]; }
uint64_t Memory::free() const {
  return total() - std::min<uint64_t>(total(), [device_.get() currentAllocatedSize]);
}

Failure Memory::make(uint64_t bytes, bool shared, Owned<id<MTLBuffer>>* out) {
  const uint64_t size = align_up(std::max<uint64_t>(bytes, 4), 4), most = [device_.get() maxBufferLength];
  if (size > most)
    return {Failure::OutOfMemory, format("{} bytes requested; Metal device '{}' allocates at most {} at once",
                                         bytes, text_of([device_.get() name]), most)};
  // Beyond the size that the system recommends, memory is swapped and everything stalls.
  if (size > free())
    return {Failure::OutOfMemory, format("{} bytes requested, {} of {} are free on Metal device '{}'", bytes,
                                         free(), total(), text_of([device_.get() name]))};
  *out = Owned<id<MTLBuffer>>([device_.get()
      newBufferWithLength:size
                  options:shared ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate]);
  if (*out) return {};
  return {
      Failure::OutOfMemory,
      format(
          "{} bytes requested; Metal device '{}' refuses a buffer of that size, although it reports {} free",
          bytes, text_of([device_.get() name]), free())};
}

Failure Memory::allocate(uint64_t bytes, MetalBuffer** out) {
  if (queue_.lost()) return queue_.lost();
  auto b = std::make_unique<MetalBuffer>();
  b->bytes = bytes;
  if (Failure f = make(bytes, shared_, &b->memory)) return f;
  if (shared_) b->seen = static_cast<uint8_t*>([b->memory.get() contents]);
  if (Failure f = clear(*b)) return f;
  *out = b.release();
  return {};
}
// Command buffers retain the objects that they use.
void Memory::release(MetalBuffer* b) { delete b; }

// By the device, even where the host could do it: so the trial of a device (discovery/examine.cpp) uses its queue.
Failure Memory::clear(MetalBuffer& b) {
  Owned<id<MTLCommandBuffer>> commands;
  if (Failure f = queue_.begin(&commands)) return f;
  id<MTLBlitCommandEncoder> encoder = [commands.get() blitCommandEncoder];
  [encoder fillBuffer:b.memory.get() range:NSMakeRange(0, [b.memory.get() length]) value:0];
  [encoder endEncoding];
  // A lack of memory shows when it is first used.
  if (Failure f = queue_.submit(commands.get())) return f;
  return queue_.wait();
}

Failure Memory::next_piece(Piece** out) {
  if (!ring_) {
    if (Failure f = make(kPieces * kPieceBytes, true, &ring_)) return f;
    for (int i = 0; i < kPieces; i++) {
      pieces_[i].offset = uint64_t(i) * kPieceBytes;
      pieces_[i].at = static_cast<uint8_t*>([ring_.get() contents]) + pieces_[i].offset;
    }
  }
  Piece& p = pieces_[next_];
  next_ = (next_ + 1) % kPieces;
  if (Failure f = queue_.wait_for(p.user.get())) return f;
  p.user = {};
  *out = &p;
  return {};
}

Failure Memory::copy(Piece& p, MetalBuffer& b, const Part& part, bool to_the_buffer) {
  Owned<id<MTLCommandBuffer>> commands;
  if (Failure f = queue_.begin(&commands)) return f;
  id<MTLBlitCommandEncoder> encoder = [commands.get() blitCommandEncoder];
  if (to_the_buffer)
    [encoder copyFromBuffer:ring_.get()
               sourceOffset:p.offset
                   toBuffer:b.memory.get()
          destinationOffset:part.begin
                       size:part.words_bytes];
  else
    [encoder copyFromBuffer:b.memory.get()
               sourceOffset:part.begin
                   toBuffer:ring_.get()
          destinationOffset:p.offset
                       size:part.words_bytes];
  [encoder endEncoding];
  if (Failure f = queue_.submit(commands.get())) return f;
  p.user = std::move(commands);
  return {};
}

template <class Visit>
Failure Memory::in_parts(uint64_t offset, uint64_t bytes, Visit visit) {
  const uint64_t end = align_up(offset + bytes, 4);
  for (uint64_t at = offset / 4 * 4; at < end; at += kPieceBytes) {
    const uint64_t stop = std::min(at + kPieceBytes, end);
    const uint64_t first = std::max(at, offset), last = std::min(stop, offset + bytes);
    if (Failure f = visit(Part{at, stop - at, first - at, last - first, first - offset})) return f;
  }
  return {};
}

Failure Memory::write(MetalBuffer& b, uint64_t offset, const void* data, uint64_t bytes) {
  if (b.seen) {
    if (Failure f = queue_.wait()) return f;
    memcpy(b.seen + offset, data, bytes);
    return {};
  }
  if (!bytes) return queue_.lost();
  return in_parts(offset, bytes, [&](const Part& part) -> Failure {
    Piece* p = nullptr;
    if (Failure f = next_piece(&p)) return f;
    if (!part.whole()) {  // words of which some bytes stay
      if (Failure f = copy(*p, b, part, false)) return f;
      if (Failure f = queue_.wait()) return f;
    }
    memcpy(p->at + part.skip, static_cast<const uint8_t*>(data) + part.done, part.bytes);
    return copy(*p, b, part, true);
  });
}

Failure Memory::read(MetalBuffer& b, uint64_t offset, void* data, uint64_t bytes) {
  if (Failure f = queue_.wait()) return f;
  if (b.seen) return memcpy(data, b.seen + offset, bytes), Failure();
  if (!bytes) return {};
  return in_parts(offset, bytes, [&](const Part& part) -> Failure {
    Piece* p = nullptr;
    if (Failure f = next_piece(&p)) return f;
    if (Failure f = copy(*p, b, part, false)) return f;
    if (Failure f = queue_.wait()) return f;
    memcpy(static_cast<uint8_t*>(data) + part.done, p->at + part.skip, part.bytes);
    return {};
  });
}

}  // namespace gimbal::metal
