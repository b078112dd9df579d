// An adapter with its device and queue: opened, asked what it can do, and watched for errors and for being
// lost.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "backends/webgpu/owned.h"

namespace gimbal::webgpu {

class Gpu {
 public:
  // Errors: Unsupported with the reason (no adapter, one that is too small), and what to do on a line of its
  // own.
  static Failure open(const Api&, std::unique_ptr<Gpu>* out);
  Gpu(const Gpu&) = delete;

  const Api& api() const { return api_; }
  Device device() const { return device_.get(); }
  Queue queue() const { return queue_.get(); }
  const Limits& limits() const { return limits_; }
  const simt::Facts& facts() const { return facts_; }

  // Until the callback of a request has been called, which sets `status` to something else than 0.
  Failure wait(Future, const uint32_t& status);
  Failure wait_for_all();  // until everything submitted has ended

  // What the library complained about since the last call, when nobody had opened a scope; `f` itself where
  // that is a failure. A device that is lost is what every call answers from then on.
  Failure said(Failure f);

  // Whether what is done in between succeeds: errors come to end(), as the failure of `doing`.
  void begin_scope();
  Failure end_scope(std::string_view doing);

 private:
  explicit Gpu(const Api& api) : api_(api) {}
  Failure find_adapter();
  Failure describe();
  Failure make_device();

  struct Heard {  // from the library, on any thread
    std::mutex mutex;
    Failure complaint;
    std::string lost;
  };

  const Api api_;
  Heard heard_;  // outlives the device
  OwnedInstance instance_;
  OwnedAdapter adapter_;
  OwnedDevice device_;
  OwnedQueue queue_;
  Limits limits_;
  simt::Facts facts_;
};

}  // namespace gimbal::webgpu
