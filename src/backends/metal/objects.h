// RAII for Objective-C objects. The files of this folder are compiled without automatic reference counting,
// so that the same code also runs where it does not exist (the tests on Linux); only Owned retains and
// releases.
#pragma once
#import <Metal/Metal.h>

#include <string>
#include <string_view>
#include <utility>

#include "gpu/runtime.h"

namespace gimbal::metal {

using gpu::Failure;

template <class T>  // id<MTLBuffer>, NSString*
class Owned {
 public:
  Owned() = default;
  explicit Owned(T made) : object_(made) {}  // takes over the reference of new..., alloc or Copy
  static Owned also(T borrowed) { return Owned([borrowed retain]); }
  Owned(Owned&& o) noexcept : object_(std::exchange(o.object_, nil)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Owned() { [object_ release]; }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

inline Owned<NSString*> string_of(std::string_view text) {
  return Owned<NSString*>([[NSString alloc] initWithBytes:text.data()
                                                   length:text.size()
                                                 encoding:NSUTF8StringEncoding]);
}
inline std::string text_of(NSString* s) {
  const char* text = s ? [s UTF8String] : nullptr;
  return text ? text : "";
}
// "the text (Domain, code 3)"
std::string text_of(NSError*);

}  // namespace gimbal::metal
