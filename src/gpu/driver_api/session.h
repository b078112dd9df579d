// A device in use: driver calls whose errors name the failed operation, and the lost-device state.
#pragma once
#include <string>
#include <utility>

#include "base/format.h"
#include "gpu/driver_api/driver.h"

namespace gimbal::gpu::driver_api {

class Session {
 public:
  Session(Driver driver, Gpu gpu) : driver_(std::move(driver)), gpu_(std::move(gpu)) {}
  ~Session();
  Session(const Session&) = delete;

  Failure start();  // creates context and streams; call it first
  // Makes this device current for the calling thread. Every entry point calls it first, because the engine's
  // threads change.
  Failure use();

  // Calls a driver function. `doing` is for the error message. Fails
  // without a call once the device is lost.
  template <class... A, class... B>
  Failure call(const Entry<int(A...)>& function, const char* doing, B... arguments) {
    if (!lost_.empty()) return {Failure::DeviceLost, lost_};
    Failure f = failure_of(*driver_.vendor, function.symbol, function.call(arguments...));
    if (!f) return f;
    f.text = format("{} ({}): {}: {}", driver_.vendor->name, gpu_.name, doing, f.text);
    if (f.code == Failure::DeviceLost) lost_ = f.text;
    return f;
  }
  // For releasing resources: a no-op once the device is lost.
  template <class... A, class... B>
  void undo(const Entry<int(A...)>& function, B... arguments) {
    if (lost_.empty()) (void)function.call(arguments...);
  }

  const Functions& functions() const { return driver_.functions; }
  const Driver& driver() const { return driver_; }
  const Gpu& gpu() const { return gpu_; }

  // The main stream, which orders all work, and side streams for
  // independent launches.
  static constexpr int kSideStreams = 3;
  void* stream() const { return stream_; }
  void* side(int i) const { return side_[i]; }
  void* forked() const { return forked_; }          // an event: the side streams may start
  void* joined(int i) const { return joined_[i]; }  // events: the end of a side stream's work
  // An event for the host. A thread that waits for it sleeps; one that waits for a stream may keep a
  // processor busy, as both drivers do by default.
  void* finished() const { return finished_; }

 private:
  const Driver driver_;
  const Gpu gpu_;
  std::string lost_;
  bool context_kept_ = false;
  void *context_ = nullptr, *stream_ = nullptr, *side_[kSideStreams] = {};
  void *forked_ = nullptr, *joined_[kSideStreams] = {}, *finished_ = nullptr;
};

}  // namespace gimbal::gpu::driver_api
