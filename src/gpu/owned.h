// RAII for objects of a driver loaded at run time.
#pragma once
#include <utility>

namespace gimbal::gpu {

// Release: the member of Api that releases a Handle. The Api must outlive the object.
template <class Api, class Handle, auto Release>
class Owned {
 public:
  Owned() = default;
  Owned(const Api& api, Handle h) : api_(&api), handle_(h) {}
  Owned(Owned&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_), std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_) (api_->*Release)(handle_);
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  const Api* api_ = nullptr;
  Handle handle_ = nullptr;
};

}  // namespace gimbal::gpu
