// One device in use: calls of the driver that name what failed, and remember that the device is lost.
#pragma once
#include <string>
#include <utility>

#include "base/format.h"
#include "gpu/driver_api/driver.h"

namespace gimbal::simt::driver_api {

class Session {
 public:
  Session(Driver driver, Gpu gpu) : driver_(std::move(driver)), gpu_(std::move(gpu)) {}
  ~Session();
  Session(const Session&) = delete;

  Failure start();  // context and streams; before anything else
  // The calling thread talks to this device from now on: first in whatever the engine calls, as its threads
  // change.
  Failure use();

  // Calls a function of the driver. `doing` is for the message. Once the device is lost, nothing is called
  // any more.
  template <class... A, class... B>
  Failure call(const Entry<int(A...)>& function, const char* doing, B... arguments) {
    if (!lost_.empty()) return {Failure::DeviceLost, lost_};
    Failure f = failure_of(*driver_.vendor, function.symbol, function.call(arguments...));
    if (!f) return f;
    f.text = format("{} ({}): {}: {}", driver_.vendor->name, gpu_.name, doing, f.text);
    if (f.code == Failure::DeviceLost) lost_ = f.text;
    return f;
  }
  // For what gives things back: a device that is lost keeps nothing.
  template <class... A, class... B>
  void undo(const Entry<int(A...)>& function, B... arguments) {
    if (lost_.empty()) (void)function.call(arguments...);
  }

  const Functions& functions() const { return driver_.functions; }
  const Driver& driver() const { return driver_; }
  const Gpu& gpu() const { return gpu_; }

  // The stream that everything is ordered by, and further ones for launches that need not wait for each
  // other.
  static constexpr int kSideStreams = 3;
  void* stream() const { return stream_; }
  void* side(int i) const { return side_[i]; }
  void* forked() const { return forked_; }          // an event: the side streams may begin
  void* joined(int i) const { return joined_[i]; }  // events: a side stream has ended

 private:
  const Driver driver_;
  const Gpu gpu_;
  std::string lost_;
  bool context_kept_ = false;
  void *context_ = nullptr, *stream_ = nullptr, *side_[kSideStreams] = {};
  void *forked_ = nullptr, *joined_[kSideStreams] = {};
};

}  // namespace gimbal::simt::driver_api
