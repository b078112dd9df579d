#include "backends/metal/programs.h"

#include "base/format.h"

// Setters of MTLCompileOptions, declared here since no SDK has all of them without a warning: fastMathEnabled
// is deprecated from macOS 15 on, and those before it know only that one.
@protocol GimbalArithmetic
- (void)setFastMathEnabled:(BOOL)enabled;
- (void)setMathMode:(NSInteger)mode;
- (void)setMathFloatingPointFunctions:(NSInteger)functions;
@end

namespace gimbal::metal {
namespace {

constexpr NSInteger kSafe = 0, kPrecise = 1;  // MTLMathModeSafe, MTLMathFloatingPointFunctionsPrecise
constexpr size_t kMaxLog = 2000;              // characters of the compiler's output

// Results must be the bits that every other device computes: without it, the compiler may reorder sums.
void ask_for_exact_arithmetic(MTLCompileOptions* options) {
  auto with = (id<GimbalArithmetic>)options;
  if ([options respondsToSelector:@selector(setMathMode:)]) {
    [with setMathMode:kSafe];
    [with setMathFloatingPointFunctions:kPrecise];
  } else {
    [with setFastMathEnabled:NO];
  }
}

}  // namespace

Failure compile(id<MTLDevice> device, const gpu::KernelCode& code, Owned<id<MTLComputePipelineState>>* out) {
  auto refused = [&](const char* call, NSError* e) {
    return Failure{Failure::Unsupported,
                   format("kernel {}: {}: {}", code.name, call, text_of(e).substr(0, kMaxLog))};
  };
  const Owned<NSString*> text =
      string_of({reinterpret_cast<const char*>(code.code.data()), code.code.size()});
  const Owned<MTLCompileOptions*> options([[MTLCompileOptions alloc] init]);
  ask_for_exact_arithmetic(options.get());
  [options.get() setLanguageVersion:MTLLanguageVersion2_3];
  NSError* e = nil;
  const Owned<id<MTLLibrary>> library([device newLibraryWithSource:text.get()
                                                           options:options.get()
                                                             error:&e]);
  if (!library) return refused("the source does not compile", e);
  const Owned<NSString*> name = string_of("main0");  // spirv-cross's
  const Owned<id<MTLFunction>> function([library.get() newFunctionWithName:name.get()]);
  if (!function) return refused("newFunctionWithName", nil);

  const Owned<MTLComputePipelineDescriptor*> wanted([[MTLComputePipelineDescriptor alloc] init]);
  [wanted.get() setComputeFunction:function.get()];
  [wanted.get() setMaxTotalThreadsPerThreadgroup:code.lanes];  // so that registers are left for all of them
  e = nil;
  Owned<id<MTLComputePipelineState>> pipeline([device
      newComputePipelineStateWithDescriptor:wanted.get()
                                    options:MTLPipelineOptionNone
                                 reflection:nullptr
                                      error:&e]);
  if (!pipeline) return refused("no pipeline can be created from it", e);
  if (const NSUInteger most = [pipeline.get() maxTotalThreadsPerThreadgroup]; most < code.lanes)
    return {Failure::Unsupported,
            format("kernel {}: a group has {} lanes, but this GPU can hold {}", code.name, code.lanes, most)};
  *out = std::move(pipeline);
  return {};
}

}  // namespace gimbal::metal
