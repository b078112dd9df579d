// The ordered queue of GPU work, and its errors. Metal reports an error only when a command buffer has ended:
// the next wait or submission returns it.
#pragma once
#include <deque>

#include "backends/metal/objects.h"

namespace gimbal::metal {

class Queue {
 public:
  explicit Queue(id<MTLDevice> device);

  Failure start();
  // A new command buffer: fill it and pass it to submit(), or drop it.
  Failure begin(Owned<id<MTLCommandBuffer>>* out);
  // Also fails if an earlier command buffer failed.
  Failure submit(id<MTLCommandBuffer>);
  Failure wait();                          // for all submitted work
  Failure wait_for(id<MTLCommandBuffer>);  // nil: nothing
  const Failure& lost() const { return lost_; }

 private:
  Failure end_of(id<MTLCommandBuffer>);
  Failure look_back(bool to_the_end);

  const Owned<id<MTLDevice>> device_;
  Owned<id<MTLCommandQueue>> queue_;
  std::deque<Owned<id<MTLCommandBuffer>>> running_;
  Failure lost_;  // set once the device is lost
};

}  // namespace gimbal::metal
