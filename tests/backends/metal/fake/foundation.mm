// Foundation, as far as the stubs declare it, over GCC's Objective-C runtime.
#include <cstdlib>
#include <cstring>

#include "backends/metal/fake/objects.h"

using namespace gimbal::test;

extern "C" {  // of the runtime
id class_createInstance(Class, size_t);
id object_dispose(id);
BOOL class_respondsToSelector(Class, SEL);
}

namespace {
thread_local std::vector<std::vector<id>> pools;
}

@implementation NSObject
+ (instancetype)alloc {
  NSObject* made = class_createInstance(self, 0);
  made->references_ = 1;
  pretended_metal().objects++;
  return made;
}
- (instancetype)init {
  return self;
}
- (instancetype)retain {
  references_++;
  return self;
}
- (oneway void)release {
  if (--references_ == 0) [self dealloc];
}
- (instancetype)autorelease {
  if (pools.empty()) complain("autorelease without a pool");
  else pools.back().push_back(self);
  return self;
}
- (void)dealloc {
  pretended_metal().objects--;
  object_dispose(self);
}
- (BOOL)respondsToSelector:(SEL)selector {
  return class_respondsToSelector(class_, selector);
}
@end

@implementation NSAutoreleasePool
- (instancetype)init {
  pools.emplace_back();
  return self;
}
- (void)drain {
  std::vector<id> last = std::move(pools.back());
  pools.pop_back();
  for (id object : last) [object release];
  [self release];
}
@end

@implementation NSString
- (instancetype)initWithBytes:(const void*)bytes
                       length:(NSUInteger)length
                     encoding:(NSStringEncoding)encoding {
  if (encoding != NSUTF8StringEncoding) complain("a string that is not UTF-8");
  text_ = strndup(static_cast<const char*>(bytes), length);
  return self;
}
- (const char*)UTF8String {
  return text_;
}
- (void)dealloc {
  free(text_);
  [super dealloc];
}
@end

@implementation NSError
- (NSInteger)code {
  return code_;
}
- (NSString*)domain {
  return domain_;
}
- (NSString*)localizedDescription {
  return text_;
}
- (void)dealloc {
  [domain_ release];
  [text_ release];
  [super dealloc];
}
@end

@implementation NSArray
- (NSUInteger)count {
  return count_;
}
- (id)objectAtIndex:(NSUInteger)index {
  return items_[index];
}
- (void)dealloc {
  for (NSUInteger i = 0; i < count_; i++) [items_[i] release];
  free(items_);
  [super dealloc];
}
@end

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  return [[[NSProcessInfo alloc] init] autorelease];
}
- (NSString*)operatingSystemVersionString {
  return a_string("Version 15.0 (pretended)");
}
@end

namespace gimbal::test {

NSString* a_string(const std::string& s) {
  return [[[NSString alloc] initWithBytes:s.data() length:s.size()
                                 encoding:NSUTF8StringEncoding] autorelease];
}
NSError* an_error(long code, const char* domain, const std::string& text) {
  NSError* e = [[NSError alloc] init];
  e->code_ = code, e->domain_ = [a_string(domain) retain], e -> text_ = [a_string(text) retain];
  return [e autorelease];
}
std::string words(NSString* s) { return [s UTF8String]; }

PretendedMetal& pretended_metal() {
  static PretendedMetal metal;
  return metal;
}
void complain(const std::string& what) {
  if (pretended_metal().complaint.empty()) pretended_metal().complaint = what;
}

}  // namespace gimbal::test
