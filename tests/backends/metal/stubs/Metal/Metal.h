// The few declarations of Apple's Metal that src/backends/metal uses, written anew for the tests on systems
// without it: what the names mean follows Apple's documentation. fake/ has a device behind them.
#pragma once
#import <Foundation/Foundation.h>

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize s = {width, height, depth};
  return s;
}

typedef NSUInteger MTLResourceOptions;
enum { MTLResourceStorageModeShared = 0, MTLResourceStorageModePrivate = 2 << 4 };
typedef NSUInteger MTLDispatchType;
enum { MTLDispatchTypeSerial = 0, MTLDispatchTypeConcurrent = 1 };
typedef NSUInteger MTLBarrierScope;
enum { MTLBarrierScopeBuffers = 1 };
typedef NSUInteger MTLPipelineOption;
enum { MTLPipelineOptionNone = 0 };
typedef NSUInteger MTLLanguageVersion;
enum { MTLLanguageVersion2_3 = (2 << 16) + 3 };
typedef NSUInteger MTLCommandBufferStatus;
enum {
  MTLCommandBufferStatusNotEnqueued = 0,
  MTLCommandBufferStatusCommitted = 2,
  MTLCommandBufferStatusCompleted = 4,
  MTLCommandBufferStatusError = 5
};

@protocol MTLBuffer <NSObject>
- (void*)contents;
@property(readonly) NSUInteger length;
@end

@protocol MTLFunction <NSObject>
@end

@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
@end

// Its arithmetic (mathMode, fastMathEnabled) is what src/backends/metal/programs.mm declares itself.
@interface MTLCompileOptions : NSObject {
 @public
  NSUInteger version_;
  BOOL exact_;
}
@property MTLLanguageVersion languageVersion;
@end

@interface MTLComputePipelineDescriptor : NSObject {
 @public
  id<MTLFunction> function_;
  NSUInteger most_;
}
@property(retain) id<MTLFunction> computeFunction;
@property NSUInteger maxTotalThreadsPerThreadgroup;
@end

@class MTLComputePipelineReflection;

@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@end

@protocol MTLCommandEncoder <NSObject>
- (void)endEncoding;
@end

@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)lanes;
@end

@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)from_offset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)to_offset
                  size:(NSUInteger)size;
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value;
@end

@protocol MTLCommandBuffer <NSObject>
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (void)commit;
- (void)waitUntilCompleted;
@property(readonly) MTLCommandBufferStatus status;
@property(readonly) NSError* error;
@end

@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
@end

@protocol MTLDevice <NSObject>
@property(readonly) NSString* name;
@property(readonly) uint64_t registryID;
@property(readonly) uint64_t recommendedMaxWorkingSetSize;
@property(readonly) NSUInteger currentAllocatedSize;
@property(readonly) NSUInteger maxBufferLength;
@property(readonly) BOOL hasUnifiedMemory;
@property(readonly) MTLSize maxThreadsPerThreadgroup;
@property(readonly) NSUInteger maxThreadgroupMemoryLength;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:
                                                              (MTLComputePipelineReflection**)reflection
                                                               error:(NSError**)error;
@end

extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void);
extern "C" NSArray<id<MTLDevice>>* MTLCopyAllDevices(void);
