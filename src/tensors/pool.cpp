#include "tensors/pool.h"

#include <algorithm>
#include <bit>

#include "base/format.h"

namespace gimbal {
namespace {

// Sizes of eight steps to a doubling: at most an eighth is wasted.
uint64_t size_class(uint64_t bytes) {
  const uint64_t n = std::max<uint64_t>(bytes, 256), step = std::bit_floor(n) / 8;
  return (n + step - 1) / step * step;
}

// The number of a size that size_class() gave.
size_t class_number(uint64_t size) {
  const int doublings = std::bit_width(size) - 1;
  return size_t(8 * doublings) + (size >> (doublings - 3) & 7);
}

constexpr uint64_t kMostKept = 256 << 20;  // beyond the bytes of living tensors

}  // namespace

Block::~Block() {
  if (owner_) (void)pool_->device().wait();  // what reads it must be done
  else pool_->take_back(std::move(buffer_));
}

Result<std::shared_ptr<Block>> MemoryPool::adopt(Bytes memory, std::shared_ptr<const void> owner) {
  auto buffer = device_->adopt(memory);
  if (!buffer) return buffer.error();
  return std::make_shared<Block>(shared_from_this(), std::move(*buffer),
                                 const_cast<std::byte*>(memory.data()), std::move(owner));
}

Result<std::shared_ptr<Block>> MemoryPool::allocate(uint64_t bytes) {
  const uint64_t size = size_class(bytes);
  std::lock_guard lock(mutex_);
  Buffer buffer;
  if (auto& kept = kept_[class_number(size)]; !kept.empty()) {
    buffer = std::move(kept.back());
    kept.pop_back();
    cached_ -= size;
  } else {
    if (limit_ && live_ + cached_ + size > limit_) give_back_all();
    if (limit_ && live_ + size > limit_)
      return Error{
          Code::OutOfMemory,
          format(
              "a tensor of {} bytes does not fit: {} of the {} bytes that this queue may use are in tensors",
              bytes, live_, limit_),
          "free tensors, or raise the queue's limit"};
    auto fresh = device_->allocate(size);
    if (!fresh && fresh.error().code == Code::OutOfMemory && cached_) {
      give_back_all();
      fresh = device_->allocate(size);
    }
    if (!fresh) return fresh.error();
    buffer = std::move(*fresh);
  }
  live_ += size, peak_ = std::max(peak_, live_ + cached_);
  void* const host = device_->host_pointer(buffer);
  return std::make_shared<Block>(shared_from_this(), std::move(buffer), host);
}

void MemoryPool::take_back(Buffer buffer) {
  std::lock_guard lock(mutex_);
  const uint64_t size = buffer.size();
  live_ -= size;
  if (cached_ + size > live_ + kMostKept) return (void)device_->wait();  // and the buffer ends here
  cached_ += size;
  kept_[class_number(size)].push_back(std::move(buffer));
}

void MemoryPool::give_back_all() {
  if (cached_) (void)device_->wait();  // what uses them must be done
  for (auto& kept : kept_) kept.clear();
  cached_ = 0;
}

void MemoryPool::trim() {
  std::lock_guard lock(mutex_);
  give_back_all();
}

MemoryPool::Stats MemoryPool::stats() const {
  std::lock_guard lock(mutex_);
  return {live_, cached_, peak_};
}

}  // namespace gimbal
