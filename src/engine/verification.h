// Verification before use: the first time that this build meets a device, it checks there the kernels
// that a model needs; the first time that it meets a model, it tries the model out. The results are
// kept, and never count for another device, driver or build. The caller decides the consequences of a
// failure.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "conformance/verification.h"
#include "engine/options.h"
#include "runtime/model.h"

namespace gimbal {

class Verifier {
 public:
  // Called before each kernel; false cancels (Failed). May be empty.
  using Progress = std::function<bool(const Device&, size_t done, size_t total)>;

  explicit Verifier(Verify when, Progress progress = {}) : when_(when), progress_(std::move(progress)) {}

  // Checks those of these kernels that have no result yet against the reference; `anew`: all of them.
  // Returns every kernel of the device that is known to be wrong. Errors: DeviceLost, OutOfMemory.
  Result<std::vector<Quarantined>> wrong_kernels(const Device&, const std::vector<size_t>& kernels,
                                                 bool anew);
  Result<std::vector<Quarantined>> wrong_kernels(const Stage&, bool anew);  // that a stage needs
  // The first layers on the device against those on `host`, where the model is new to it. Errors: Failed,
  // with the numbers, when they differ; those of loading and computing.
  Status check_layers(const ModelSource&, const Device&, const Device& host, const RunOptions&) const;
  bool is_new(const Device&, const ModelSource&) const;
  // The loaded model against itself: runtime/model_check.h. `name`: of the model, for people. Errors: Failed,
  // with the numbers, when it does not agree with itself; those of the session.
  Status try_out(Model&, const ModelSource&, const std::string& name);

  // Why the last results could not be saved for the next start; null if they were saved.
  const Error* not_kept() const { return not_kept_ ? &*not_kept_ : nullptr; }

 private:
  void keep(const Device&, const std::function<void(Json&)>& change);

  Verify when_;
  Progress progress_;
  std::optional<Error> not_kept_;
};

}  // namespace gimbal
