// The pretended device: its facts, its memory, and its compiler, which knows the texts that were compiled
// with the tests.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "backends/metal/fake/objects.h"

using namespace gimbal::test;

namespace {
std::map<std::string_view, const CompiledText*>& known() {
  static std::map<std::string_view, const CompiledText*> all;
  return all;
}
}  // namespace

namespace gimbal::test {
void know_texts(std::span<const CompiledText> texts) {
  for (const CompiledText& t : texts) known()[{t.text, t.bytes}] = &t;
}
const CompiledText* find_text(const std::string& text) {
  const auto it = known().find(text);
  return it == known().end() ? nullptr : it->second;
}
}  // namespace gimbal::test

@implementation PretendedBuffer
- (void*)contents {
  return shared_ ? bytes_ : nullptr;
}
- (NSUInteger)length {
  return length_;
}
- (void)dealloc {
  pretended_metal().allocated -= length_;
  free(bytes_);
  [super dealloc];
}
@end

@interface PretendedFunction : NSObject <MTLFunction> {
 @public
  const ShimmedKernel* kernel_;
}
@end
@implementation PretendedFunction
@end

@interface PretendedLibrary : NSObject <MTLLibrary> {
 @public
  const CompiledText* text_;
}
@end
@implementation PretendedLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  if (words(name) != "main0" || pretended_metal().no_function) return nil;
  PretendedFunction* f = [[PretendedFunction alloc] init];
  f->kernel_ = text_->kernel;
  return f;
}
@end

@implementation PretendedPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return pretended_metal().pipeline_lanes;
}
@end

// As macOS has it: exact arithmetic must be asked for, by another name before macOS 15.
@implementation MTLCompileOptions
- (BOOL)respondsToSelector:(SEL)selector {
  if (selector == @selector(setMathMode:)) return pretended_metal().knows_math_mode;
  return [super respondsToSelector:selector];
}
- (void)setMathMode:(NSInteger)mode {
  exact_ = exact_ || mode == 0;
}
- (void)setMathFloatingPointFunctions:(NSInteger)functions {
  if (functions != 1) complain("fast functions");
}
- (void)setFastMathEnabled:(BOOL)enabled {
  if (pretended_metal().knows_math_mode) complain("fastMathEnabled is deprecated");
  exact_ = !enabled;
}
- (MTLLanguageVersion)languageVersion {
  return version_;
}
- (void)setLanguageVersion:(MTLLanguageVersion)version {
  version_ = version;
}
@end

@implementation MTLComputePipelineDescriptor
- (id<MTLFunction>)computeFunction {
  return function_;
}
- (void)setComputeFunction:(id<MTLFunction>)function {
  [function retain];
  [function_ release];
  function_ = function;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return most_;
}
- (void)setMaxTotalThreadsPerThreadgroup:(NSUInteger)most {
  most_ = most;
}
- (void)dealloc {
  [function_ release];
  [super dealloc];
}
@end

@interface PretendedDevice : NSObject <MTLDevice> {
 @public
  uint64_t number_;
}
@end
@implementation PretendedDevice
- (NSString*)name {
  return a_string("Pretended M" + std::to_string(number_));
}
- (uint64_t)registryID {
  return number_;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return pretended_metal().memory;
}
- (NSUInteger)currentAllocatedSize {
  return pretended_metal().allocated;
}
- (NSUInteger)maxBufferLength {
  return pretended_metal().piece;
}
- (BOOL)hasUnifiedMemory {
  return pretended_metal().unified;
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(pretended_metal().lanes, 1024, 64);
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return pretended_metal().group_memory;
}

- (id<MTLCommandQueue>)newCommandQueue {
  if (pretended_metal().no_queue) return nil;
  PretendedQueue* q = [[PretendedQueue alloc] init];
  q->pending_ = new std::vector<PretendedCommands*>;
  return q;
}

// Filled with what is no number: nobody may rely on new memory being zero.
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  const PretendedMetal& m = pretended_metal();
  if (m.no_buffers || length == 0 || length > m.piece || m.allocated + length > m.memory) return nil;
  if (options != MTLResourceStorageModeShared && options != MTLResourceStorageModePrivate)
    complain("a storage mode");
  PretendedBuffer* b = [[PretendedBuffer alloc] init];
  b->bytes_ = static_cast<uint8_t*>(malloc(length));
  memset(b->bytes_, 0xff, length);
  b->length_ = length, b->shared_ = options == MTLResourceStorageModeShared;
  pretended_metal().allocated += length;
  return b;
}

- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error {
  const CompiledText* text = find_text(words(source));
  if (!text) {
    *error = an_error(3, "MTLLibraryErrorDomain", "program_source:1:1: error: unknown type name 'nonsense'");
    return nil;
  }
  if (!options->exact_) complain("a text is compiled with fast arithmetic");
  if (options->version_ != MTLLanguageVersion2_3)
    complain("a text is compiled as another version of the language");
  pretended_metal().compiled++;
  PretendedLibrary* l = [[PretendedLibrary alloc] init];
  l->text_ = text;
  return l;
}

- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:
                                                              (MTLComputePipelineReflection**)reflection
                                                               error:(NSError**)error {
  (void)options, (void)reflection;
  if (pretended_metal().no_pipelines) {
    *error = an_error(2, "AGXMetal", "Compiler encountered an internal error");
    return nil;
  }
  auto* function = static_cast<PretendedFunction*>(descriptor->function_);
  if (descriptor->most_ != function->kernel_->lanes) complain("a pipeline for another number of lanes");
  PretendedPipeline* p = [[PretendedPipeline alloc] init];
  p->kernel_ = function->kernel_;
  return p;
}
@end

namespace {
PretendedDevice* device(uint64_t number) {
  PretendedDevice* d = [[PretendedDevice alloc] init];
  d->number_ = number;
  return d;
}
}  // namespace

// The default is the second of the list, as on a Mac with two.
id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  const int n = pretended_metal().devices;
  return n ? device(n > 1 ? 2 : 1) : nil;
}
NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) {
  const int n = pretended_metal().devices;
  NSArray* all = [[NSArray alloc] init];
  all->items_ = static_cast<id*>(calloc(size_t(n) + 1, sizeof(id)));
  all->count_ = NSUInteger(n);
  for (int i = 0; i < n; i++) all->items_[i] = device(uint64_t(i) + 1);
  return all;
}
