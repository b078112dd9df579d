#include "backends/metal/queue.h"

#include "base/format.h"

namespace gimbal::metal {
namespace {

struct Meaning {
  NSInteger code;
  Failure::Code failure;
  const char* words;
};
// MTLCommandBufferError. The results of the commands are lost in any case; only after a lack of memory is the
// device still usable.
constexpr Meaning kMeanings[] = {
    {1, Failure::DeviceLost, "an internal error of the driver"},
    {2, Failure::DeviceLost, "it ran too long and was stopped by the system"},
    {3, Failure::DeviceLost, "it accessed memory that does not exist"},
    {4, Failure::DeviceLost, "the system no longer lets this process use the GPU"},
    {7, Failure::DeviceLost,
     "this process may not use the GPU now (it is in the background, or is not allowed to)"},
    {8, Failure::OutOfMemory, "there was not enough memory to run it"},
    {9, Failure::DeviceLost, "it used memory that had been freed"},
    {11, Failure::DeviceLost, "the GPU was removed"},
    {12, Failure::DeviceLost, "it ran out of stack"},
};

}  // namespace

std::string text_of(NSError* e) {
  if (!e) return "no reason given";
  return format("{} ({}, code {})", text_of([e localizedDescription]), text_of([e domain]), long([e code]));
}

Queue::Queue(id<MTLDevice> device) : device_(Owned<id<MTLDevice>>::also(device)) {}

Failure Queue::start() {
  queue_ = Owned<id<MTLCommandQueue>>([device_.get() newCommandQueue]);
  if (queue_) return {};
  return {Failure::DeviceLost,
          format("Metal device '{}' creates no command queue", text_of([device_.get() name]))};
}

Failure Queue::begin(Owned<id<MTLCommandBuffer>>* out) {
  if (lost_) return lost_;
  id<MTLCommandBuffer> commands = [queue_.get() commandBuffer];
  if (!commands)
    return lost_ = {Failure::DeviceLost,
                    format("Metal device '{}' creates no command buffer", text_of([device_.get() name]))};
  *out = Owned<id<MTLCommandBuffer>>::also(commands);
  return {};
}

Failure Queue::submit(id<MTLCommandBuffer> commands) {
  if (lost_) return lost_;
  [commands commit];
  running_.push_back(Owned<id<MTLCommandBuffer>>::also(commands));
  return look_back(false);
}

Failure Queue::wait() {
  Failure f = look_back(true);
  return lost_ ? lost_ : f;
}

Failure Queue::wait_for(id<MTLCommandBuffer> commands) {
  if (commands) [commands waitUntilCompleted];
  return lost_ ? lost_ : look_back(false);
}

// Drops ended command buffers. Reports the first failure once; a lost device is reported every time.
Failure Queue::look_back(bool to_the_end) {
  Failure first;
  while (!running_.empty()) {
    id<MTLCommandBuffer> oldest = running_.front().get();
    if (to_the_end) [oldest waitUntilCompleted];
    const MTLCommandBufferStatus status = [oldest status];
    if (status != MTLCommandBufferStatusCompleted && status != MTLCommandBufferStatusError) break;
    if (Failure f = end_of(oldest); f && !first) first = f;
    running_.pop_front();
  }
  return first;
}

Failure Queue::end_of(id<MTLCommandBuffer> commands) {
  if ([commands status] != MTLCommandBufferStatusError) return {};
  NSError* e = [commands error];
  Failure f = {Failure::DeviceLost, "for an unknown reason"};
  for (const Meaning& m : kMeanings)
    if (e && m.code == [e code]) f = {m.failure, m.words};
  f.text = format("Metal device '{}': the submitted work failed: {}; the system reports: {}",
                  text_of([device_.get() name]), f.text, text_of(e));
  if (f.code == Failure::DeviceLost && !lost_) lost_ = f;
  return f;
}

}  // namespace gimbal::metal
