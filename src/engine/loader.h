// From a plan to a model that runs: verifies the kernels and the model at first use, measures rival
// kernels, uses packed weights, loads. Devices decides the placement: the program `gimbal` chooses
// (engine/device_chooser.h), a worker program has a single device.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/device_record.h"
#include "engine/find_model.h"
#include "engine/verification.h"
#include "program/receipt.h"
#include "runtime/device_lost.h"

namespace gimbal {

// A model with its devices and plan. Each member may depend on those before it.
struct PlannedModel {
  ModelFile source;
  OpenedDevice opened;                          // the requested or chosen device
  std::vector<std::unique_ptr<Device>> others;  // that hold, or may hold, further stages
  std::vector<Fallback> fallbacks;              // all, in the order of their discovery
  ModelPlan plan;
};

// A model with its weights on the devices. Each member may depend on those before it.
struct LoadedModel {
  ModelFile source;
  OpenedDevice opened;
  std::vector<std::unique_ptr<Device>> others;
  std::vector<Fallback> fallbacks;
  std::unique_ptr<Model> model;
  double load_seconds = 0;
  std::vector<ReceiptLine> at_start = {};       // kernels that ran before the first prompt, in the trial
  std::shared_ptr<LoadedModel> successor = {};  // the model that took over its sequences after a loss

  // The kernels that ran since then.
  std::vector<ReceiptLine> receipt() const { return since(model->receipt(), at_start); }
};
using LoadedModelPtr = std::shared_ptr<LoadedModel>;
// Its model; the pointer keeps all of `on` alive.
inline ModelPtr model_of(const LoadedModelPtr& on) { return {on, on->model.get()}; }

// The devices that a model may be loaded on.
class Devices {
 public:
  virtual ~Devices() = default;
  // Opens devices and places the layers, without unusable ones (DeviceRecord). Errors: those of opening and
  // of make_model_plan.
  virtual Result<PlannedModel> place(const ModelFile&) = 0;
  // The CPU, the reference for other devices. Errors: NoBackend if the program has no CPU backend.
  virtual Result<std::unique_ptr<Device>> open_host() = 0;
};

// "metal:0", "vulkan:1": the devices of a plan that another device can replace.
std::vector<std::string> replaceable(const ModelPlan&);

// Not thread-safe.
class Loader {
 public:
  // All outlive it.
  Loader(const EngineOptions&, Devices&, DeviceRecord&);
  Loader(const Loader&) = delete;

  // From the file's header alone: Devices::place with the wished cache size, and packed weights. Errors:
  // those of place; OutOfMemory; under strict those of packed weights.
  Result<PlannedModel> plan(const ModelFile&);
  // The same without kernels that compute wrong results here, and without devices that have no kernels
  // left. Errors: NoBackend under strict in place of each of these.
  Result<PlannedModel> plan_verified(const ModelFile&);
  // The same with the kernels that load() uses: rivals that are right were timed. Errors: the same.
  Result<PlannedModel> plan_measured(const ModelFile&);
  // Loads the model and tries it out. If a device refuses memory that it reported as free, is lost, or
  // computes wrong results, Devices places the model without it. Errors: those of plan_verified and
  // Model::load; under strict the first such failure.
  Result<LoadedModelPtr> load(const ModelFile&);

  Verifier& verifier() { return verifier_; }
  // Emits NotKept, once, if the results of verification cannot be saved.
  void emit_not_kept();

 private:
  Result<bool> verify(const PlannedModel&, bool anew);
  Result<LoadedModelPtr> load_once(PlannedModel&&);
  Status use_packed(PlannedModel&);
  Status refuse_packed(PlannedModel&, const std::string& path, const Error& why);

  const EngineOptions& options_;
  Devices& devices_;
  DeviceRecord& record_;
  Verifier verifier_;
  bool not_kept_emitted_ = false;
  std::vector<Error> damaged_;  // files of packed weights that are not used any more: `value`, and why
};

}  // namespace gimbal
