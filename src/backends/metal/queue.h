// What the GPU was given to do, in order, and what became of it. Metal tells of an error when a command
// buffer has ended: whoever waits, or gives the next one, hears of it.
#pragma once
#include <deque>

#include "backends/metal/objects.h"

namespace gimbal::metal {

class Queue {
 public:
  explicit Queue(id<MTLDevice> device);

  Failure start();
  // A new command buffer: to be filled and given to submit(), or dropped.
  Failure begin(Owned<id<MTLCommandBuffer>>* out);
  // Fails also when an earlier one failed.
  Failure submit(id<MTLCommandBuffer>);
  Failure wait();                          // for all that was submitted
  Failure wait_for(id<MTLCommandBuffer>);  // nil: nothing
  const Failure& lost() const { return lost_; }

 private:
  Failure end_of(id<MTLCommandBuffer>);
  Failure look_back(bool to_the_end);

  const Owned<id<MTLDevice>> device_;
  Owned<id<MTLCommandQueue>> queue_;
  std::deque<Owned<id<MTLCommandBuffer>>> running_;
  Failure lost_;  // a device that is lost stays lost
};

}  // namespace gimbal::metal
