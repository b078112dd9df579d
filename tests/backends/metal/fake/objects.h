// The classes behind the pretended Metal.
#pragma once
#import <Metal/Metal.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/metal/fake/control.h"

namespace gimbal::test {
NSString* a_string(const std::string&);  // these two: autoreleased
NSError* an_error(long code, const char* domain, const std::string& text);
std::string words(NSString*);
const CompiledText* find_text(const std::string&);
void complain(const std::string&);

// What an encoder was told to do. What has the same number may run in any order.
struct Step {
  std::function<std::string()> run;  // gives what is wrong
  int epoch;
};
}  // namespace gimbal::test

@interface PretendedBuffer : NSObject <MTLBuffer> {
 @public
  uint8_t* bytes_;
  NSUInteger length_;
  BOOL shared_;
}
@end

@interface PretendedPipeline : NSObject <MTLComputePipelineState> {
 @public
  const gimbal::test::ShimmedKernel* kernel_;
}
@end

@interface PretendedCommands : NSObject <MTLCommandBuffer> {
 @public
  MTLCommandBufferStatus status_;
  NSError* error_;
  BOOL encoding_;
  int epoch_;
  std::vector<gimbal::test::Step>* steps_;
  std::vector<id>* kept_;  // what it uses
  id queue_;
}
- (void)keep:(id)object;
- (void)add:(std::function<std::string()>)step;
- (void)run;
@end

@interface PretendedQueue : NSObject <MTLCommandQueue> {
 @public
  std::vector<PretendedCommands*>* pending_;
}
- (void)runUpTo:(PretendedCommands*)last;
@end

@interface PretendedCompute : NSObject <MTLComputeCommandEncoder> {
 @public
  PretendedCommands* commands_;
  PretendedPipeline* pipeline_;
  BOOL serial_;
  const uint8_t* at_[31];
  uint32_t bound_;
  std::vector<uint8_t>* params_;
}
@end

@interface PretendedBlit : NSObject <MTLBlitCommandEncoder> {
 @public
  PretendedCommands* commands_;
}
@end
