// A model ready to run: weights on its devices, programs prepared, KV pages reserved. Nothing is allocated on
// a device after load() returns.
#pragma once
#include <functional>
#include <memory>

#include "program/receipt.h"
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
  // Where the output head is; of an undivided model, where everything is.
  const Device& device() const { return blueprint_.device(); }
  int context() const { return blueprint_.options.context; }

  // What ran since load(), of every part: op, device, kernel, reason, and how often, from the devices' own
  // counters; or that a device does not count. Not while a session computes.
  std::vector<ReceiptLine> receipt() const;

 private:
  friend class Session;
  // What one part of the blueprint holds on its device.
  struct Held {
    Buffer buffers[kSlots];
    std::vector<Executable> executables;  // of the buckets
    std::vector<Executable> leading;      // of Part::leading
  };
  Model(Blueprint b) : blueprint_(std::move(b)) {}
  Status take_memory();
  Status read_weights(const Progress& progress);

  Blueprint blueprint_;
  std::vector<Held> held_;           // by the blueprint's parts
  std::vector<int32_t> free_pages_;  // KV pages that no session holds; the same number in every part's caches
  std::vector<bool> sequence_taken_;
};

}  // namespace gimbal
