// An adapter with its device and queue: opens it, checks its limits, and
// monitors errors and device loss.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "backends/webgpu/api.h"

namespace gimbal::webgpu {

class Gpu {
 public:
  // Errors: Unsupported with the reason (no adapter, or limits too low),
  // and the remedy on a line of its own.
  static Failure open(const Api&, std::unique_ptr<Gpu>* out);
  Gpu(const Gpu&) = delete;

  const Api& api() const { return api_; }
  Device device() const { return device_.get(); }
  Queue queue() const { return queue_.get(); }
  const Limits& limits() const { return limits_; }
  const gpu::Facts& facts() const { return facts_; }

  // Waits until a request's callback sets `status` to a value other than 0.
  Failure wait(Future, const uint32_t& status);
  Failure wait_for_all();  // until all submitted work has ended

  // The library's errors since the last call, outside any scope; returns `f` itself if it is a failure. Once
  // the device is lost, every call returns that.
  Failure said(Failure f);

  // Error scope: errors between begin and end are returned by end(), as the failure of `doing`.
  void begin_scope();
  Failure end_scope(std::string_view doing);

 private:
  explicit Gpu(const Api& api) : api_(api) {}
  Failure find_adapter();
  Failure describe();
  Failure make_device();

  struct Heard {  // reported by the library, on any thread
    std::mutex mutex;
    Failure complaint;
    std::string lost;
  };

  const Api api_;
  Heard heard_;  // must outlive the device
  OwnedInstance instance_;
  OwnedAdapter adapter_;
  OwnedDevice device_;
  OwnedQueue queue_;
  Limits limits_;
  gpu::Facts facts_;
};

}  // namespace gimbal::webgpu
