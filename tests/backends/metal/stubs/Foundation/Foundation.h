// The few declarations of Apple's Foundation that src/backends/metal uses, written anew for the tests on
// systems without it: what the names mean follows Apple's documentation. fake/foundation.mm has the code
// behind them.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef unsigned char BOOL;
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#ifndef nil
#define nil ((id)0)
#endif

typedef struct {
  NSUInteger location, length;
} NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange r = {location, length};
  return r;
}

@protocol NSObject
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (BOOL)respondsToSelector:(SEL)selector;
@end

__attribute__((objc_root_class))
@interface NSObject<NSObject> {
  Class class_;
  NSUInteger references_;
}
+ (instancetype)alloc;
- (instancetype)init;
- (void)dealloc;
@end

// What @autoreleasepool becomes where the Objective-C runtime has no pools of its own.
@interface NSAutoreleasePool : NSObject
- (void)drain;
@end

typedef NSUInteger NSStringEncoding;
enum { NSUTF8StringEncoding = 4 };
// The members are those of fake/foundation.mm.
@interface NSString : NSObject {
 @public
  char* text_;
}
- (instancetype)initWithBytes:(const void*)bytes
                       length:(NSUInteger)length
                     encoding:(NSStringEncoding)encoding;
- (const char*)UTF8String;
@end

@interface NSError : NSObject {
 @public
  NSInteger code_;
  NSString *domain_, *text_;
}
@property(readonly) NSInteger code;
@property(readonly) NSString* domain;
@property(readonly) NSString* localizedDescription;
@end

@interface NSArray<ObjectType> : NSObject {
 @public
  id* items_;
  NSUInteger count_;
}
@property(readonly) NSUInteger count;
- (ObjectType)objectAtIndex:(NSUInteger)index;
@end

@interface NSProcessInfo : NSObject
+ (NSProcessInfo*)processInfo;
@property(readonly) NSString* operatingSystemVersionString;
@end
