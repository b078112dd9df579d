// Verified before use: the first time that this build meets a device, the kernels that a model needs are
// checked there, and the first time that it meets a model, the model is tried out. What was found is kept;
// nothing of it is believed of another device, driver or build. What follows from a failure is the caller's
// business.
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

class FirstUse {
 public:
  // Called before each kernel; false cancels (Failed). May be empty.
  using Progress = std::function<bool(const Device&, size_t done, size_t total)>;

  explicit FirstUse(Verify when, Progress progress = {}) : when_(when), progress_(std::move(progress)) {}

  // Those of these kernels that nothing is known of, against the reference; `anew`: all of them. Answers
  // every one of the device that is known to be wrong. Errors: DeviceLost, OutOfMemory.
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

  // Why the last findings could not be kept for the next start; null when they could.
  const Error* not_kept() const { return not_kept_ ? &*not_kept_ : nullptr; }

 private:
  void keep(const Device&, const std::function<void(Json&)>& change);

  Verify when_;
  Progress progress_;
  std::optional<Error> not_kept_;
};

}  // namespace gimbal
