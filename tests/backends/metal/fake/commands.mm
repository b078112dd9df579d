// What the pretended device is told to do, and does when somebody waits: command buffers in the order in
// which they were committed; in each, what no barrier orders in any order. Says what Metal's own checks would
// say.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "backends/emulator/group.h"
#include "backends/metal/fake/objects.h"

using namespace gimbal::test;
using gimbal::emulator::Lane;

namespace {

constexpr uint32_t kParams = 9, kStep = 8;  // of the kernels (gpu/runtime.h)

// One dispatch: what was bound when it was encoded.
struct Dispatch {
  const ShimmedKernel* kernel;
  const uint8_t* at[8];
  const uint8_t* step;
  std::vector<uint8_t> params;
  MTLSize groups;

  std::string run() const {
    static gimbal::emulator::GroupRunner runner(nullptr, nullptr);
    void* data[8];
    for (int i = 0; i < 8; i++) data[i] = const_cast<uint8_t*>(at[i]);
    Lane common = {};
    common.data = data, common.params = params.data(), common.step = reinterpret_cast<const int32_t*>(step);
    const NSUInteger n = groups.width * groups.height * groups.depth;
    for (NSUInteger i = 0; i < n; i++) {
      common.group[0] = uint32_t(i % groups.width),
      common.group[1] = uint32_t(i / groups.width % groups.height),
      common.group[2] = uint32_t(i / groups.width / groups.height);
      if (kernel->group_memory)
        memset(kernel->group_memory, 0xff, size_t(kernel->group_memory_end - kernel->group_memory));
      std::string wrong = runner.run(kernel->code, common, kernel->lanes);
      if (!wrong.empty()) return std::string(kernel->name) + ": " + wrong;
    }
    pretended_metal().dispatches++;
    return "";
  }
};

void in_some_order(std::vector<Step*>& steps) {
  std::reverse(steps.begin(), steps.end());
  if (const uint64_t seed = pretended_metal().seed) {
    std::mt19937_64 random(seed);
    std::shuffle(steps.begin(), steps.end(), random);
  }
}

}  // namespace

@implementation PretendedQueue
- (id<MTLCommandBuffer>)commandBuffer {
  if (pretended_metal().no_commands) return nil;
  PretendedCommands* c = [[PretendedCommands alloc] init];
  c->steps_ = new std::vector<Step>;
  c->kept_ = new std::vector<id>;
  c->queue_ = [self retain];
  return [c autorelease];
}
- (void)runUpTo:(PretendedCommands*)last {
  while (!pending_->empty()) {
    PretendedCommands* c = pending_->front();
    pending_->erase(pending_->begin());
    [c run];
    const bool done = c == last;
    [c release];
    if (done) return;
  }
}
- (void)dealloc {
  if (!pending_->empty()) complain("the queue is given back while commands run");
  for (PretendedCommands* c : *pending_) [c release];
  delete pending_;
  [super dealloc];
}
@end

@implementation PretendedCommands
- (MTLCommandBufferStatus)status {
  return status_;
}
- (NSError*)error {
  return error_;
}
- (void)keep:(id)object {
  kept_->push_back([object retain]);
}
- (void)add:(std::function<std::string()>)step {
  steps_->push_back({std::move(step), epoch_});
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  if (encoding_ || status_) complain("an encoder while another one is open, or after commit");
  encoding_ = YES, epoch_++;
  PretendedCompute* e = [[PretendedCompute alloc] init];
  e->commands_ = self, e->serial_ = type == MTLDispatchTypeSerial;
  e->params_ = new std::vector<uint8_t>;
  return [e autorelease];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  if (encoding_ || status_) complain("an encoder while another one is open, or after commit");
  encoding_ = YES, epoch_++;
  PretendedBlit* e = [[PretendedBlit alloc] init];
  e->commands_ = self;
  return [e autorelease];
}
- (void)commit {
  if (encoding_ || status_) complain("a commit of an open encoder, or a second one");
  status_ = MTLCommandBufferStatusCommitted;
  static_cast<PretendedQueue*>(queue_)->pending_->push_back([self retain]);
}
- (void)waitUntilCompleted {
  if (status_ == MTLCommandBufferStatusNotEnqueued) complain("a wait for what was not committed");
  if (status_ == MTLCommandBufferStatusCommitted) [static_cast<PretendedQueue*>(queue_) runUpTo:self];
}
- (void)run {
  PretendedMetal& m = pretended_metal();
  m.commands++;
  status_ = MTLCommandBufferStatusCompleted;
  if (m.fail_at == 0 || (m.fail_at > 0 && m.fail_at-- == 0)) {
    status_ = MTLCommandBufferStatusError;
    error_ = [an_error(m.fail_code, "MTLCommandBufferErrorDomain", "Pretended") retain];
    if (m.fail_code == 8) m.fail_at = -1;
    return;
  }
  for (int epoch = 0; epoch <= epoch_; epoch++) {
    std::vector<Step*> now;
    for (Step& s : *steps_)
      if (s.epoch == epoch) now.push_back(&s);
    in_some_order(now);
    for (Step* s : now)
      if (const std::string wrong = s->run(); !wrong.empty()) {
        complain(wrong);
        status_ = MTLCommandBufferStatusError;
        error_ = [an_error(3, "MTLCommandBufferErrorDomain", wrong) retain];
        return;
      }
  }
}
- (void)dealloc {
  for (id object : *kept_) [object release];
  delete kept_;
  delete steps_;
  [error_ release];
  [queue_ release];
  [super dealloc];
}
@end

@implementation PretendedCompute
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  pipeline_ = static_cast<PretendedPipeline*>(state);
  [commands_ keep:state];
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  auto* b = static_cast<PretendedBuffer*>(buffer);
  if (!b || offset >= b->length_ || offset % 4 || index > 30) return complain("a binding beyond its buffer");
  at_[index] = b->bytes_ + offset;
  bound_ |= 1u << index;
  [commands_ keep:buffer];
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  if (index != kParams || length == 0 || length > 4096) return complain("bytes that are no parameters");
  params_->assign(static_cast<const uint8_t*>(bytes), static_cast<const uint8_t*>(bytes) + length);
  bound_ |= 1u << index;
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
  if (scope != MTLBarrierScopeBuffers) complain("a barrier for something else than buffers");
  pretended_metal().barriers++;
  commands_->epoch_++;
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)lanes {
  if (!pipeline_) return complain("a dispatch without a pipeline");
  const ShimmedKernel* k = pipeline_->kernel_;
  if (lanes.width != k->lanes || lanes.height != 1 || lanes.depth != 1)
    complain(std::string(k->name) + ": lanes");
  if (!groups.width || !groups.height || !groups.depth) complain(std::string(k->name) + ": no groups");
  if ((k->buffers & ~bound_) || params_->size() < k->param_bytes)
    return complain(std::string(k->name) + ": not all is bound");
  auto d = std::make_shared<Dispatch>(Dispatch{k, {}, at_[kStep], *params_, groups});
  for (int i = 0; i < 8; i++) d->at[i] = at_[i];
  [commands_ add:[d] { return d->run(); }];
  if (serial_) commands_->epoch_++;
}
- (void)endEncoding {
  commands_->encoding_ = NO;
}
- (void)dealloc {
  delete params_;
  [super dealloc];
}
@end

@implementation PretendedBlit
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)from_offset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)to_offset
                  size:(NSUInteger)size {
  auto *a = static_cast<PretendedBuffer*>(from), *b = static_cast<PretendedBuffer*>(to);
  if (from_offset + size > a->length_ || to_offset + size > b->length_ || from_offset % 4 || to_offset % 4 ||
      size % 4 || !size)
    return complain("a copy beyond a buffer, or of parts of words");
  [commands_ keep:from];
  [commands_ keep:to];
  pretended_metal().copies++;
  [commands_ add:[=] {
    memcpy(b->bytes_ + to_offset, a->bytes_ + from_offset, size);
    return std::string();
  }];
}
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  auto* b = static_cast<PretendedBuffer*>(buffer);
  if (range.location + range.length > b->length_ || range.location % 4 || range.length % 4 || !range.length)
    return complain("a fill beyond a buffer, or of parts of words");
  [commands_ keep:buffer];
  [commands_ add:[=] {
    memset(b->bytes_ + range.location, value, range.length);
    return std::string();
  }];
}
- (void)endEncoding {
  commands_->encoding_ = NO;
}
@end
