// A model ready to run: weights on a device, programs prepared, KV pages reserved. Nothing is allocated on
// the device after load() returns.
#pragma once
#include <functional>
#include <memory>

#include "runtime/blueprint.h"

namespace gimbal {

class Model {
 public:
  // Called from the loading thread with the bytes of weights laid out so far, and in all; false cancels
  // (Failed).
  using Progress = std::function<bool(uint64_t done, uint64_t total)>;

  // Takes what the blueprint says. `file` is needed only until load() returns. Errors: OutOfMemory before
  // anything is read when the plan does not fit; Malformed weights; device errors.
  static Result<std::unique_ptr<Model>> load(Blueprint blueprint, const Progress& progress = {});

  const Config& config() const { return blueprint_.config; }
  const Blueprint& blueprint() const { return blueprint_; }
  const Device& device() const { return *blueprint_.device; }
  int context() const { return blueprint_.options.context; }

 private:
  friend class Session;
  Model(Blueprint b) : blueprint_(std::move(b)) {}

  Blueprint blueprint_;
  Buffer buffers_[kSlots];
  std::vector<Executable> executables_;  // of the buckets
  std::vector<int32_t> free_pages_;      // KV pages that no session holds
  std::vector<bool> sequence_taken_;
};

}  // namespace gimbal
