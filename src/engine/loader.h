// From a plan to a model that runs: verifies the kernels and the model at first use, measures where there is
// a choice of kernels, takes packed weights, loads. Where the model goes is the business of Devices: the
// program `gimbal` chooses (engine/device_chooser.h), a worker program has a single device.
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

// What a model will run on. Members are in the order in which they depend on each other.
struct PlannedModel {
  ModelFile source;
  OpenedDevice opened;                          // the one that was asked for or chosen
  std::vector<std::unique_ptr<Device>> others;  // that hold a stage of the model, too, or may
  std::vector<Fallback> fallbacks;              // all of them, in the order in which they were found
  ModelPlan plan;
};

// With its weights on the devices. Members are in the order in which they depend on each other.
struct LoadedModel {
  ModelFile source;
  OpenedDevice opened;
  std::vector<std::unique_ptr<Device>> others;
  std::vector<Fallback> fallbacks;
  std::unique_ptr<Model> model;
  double load_seconds = 0;
  std::vector<ReceiptLine> at_start = {};       // what ran before the first prompt: the model's trial
  std::shared_ptr<LoadedModel> successor = {};  // that its sequences moved to when a device was lost

  // What ran since then.
  std::vector<ReceiptLine> receipt() const { return since(model->receipt(), at_start); }
};
using LoadedModelPtr = std::shared_ptr<LoadedModel>;
// Its model, which keeps all of it.
inline ModelPtr model_of(const LoadedModelPtr& on) { return {on, on->model.get()}; }

// The devices that a model may be loaded on.
class Devices {
 public:
  virtual ~Devices() = default;
  // Opens devices and places the layers, without what the record calls unusable. Errors: those of opening and
  // of make_model_plan.
  virtual Result<PlannedModel> place(const ModelFile&) = 0;
  // The CPU, which others are compared with. Errors: NoBackend where the program has none.
  virtual Result<std::unique_ptr<Device>> open_host() = 0;
};

// "metal:0", "vulkan:1": the devices of a plan that another one can stand in for.
std::vector<std::string> replaceable(const ModelPlan&);

// Not thread-safe.
class Loader {
 public:
  // All outlive it.
  Loader(const EngineOptions&, Devices&, DeviceRecord&);
  Loader(const Loader&) = delete;

  // From the file's header alone: Devices::place with the cache that is wished, and packed weights. Errors:
  // those of place; OutOfMemory; under strict what is wrong with packed weights.
  Result<PlannedModel> plan(const ModelFile&);
  // The same without the kernels that give wrong numbers here, and without devices that have none left.
  // Errors: NoBackend under strict in place of each of these.
  Result<PlannedModel> plan_verified(const ModelFile&);
  // Loads the model and tries it out. A device that refuses memory it said was free, is lost, or computes
  // wrong is given up, and Devices places the model anew. Errors: those of plan_verified and Model::load;
  // under strict the first.
  Result<LoadedModelPtr> load(const ModelFile&);

  FirstUse& first_use() { return first_use_; }
  // Once: that what was verified cannot be kept for the next start.
  void tell_not_kept();

 private:
  Result<bool> verify(const PlannedModel&, bool anew);
  Result<PlannedModel> plan_measured(const ModelFile&);
  Result<LoadedModelPtr> load_once(PlannedModel&&);
  Status use_packed(PlannedModel&);
  Status refuse_packed(PlannedModel&, const std::string& path, const Error& why);

  const EngineOptions& options_;
  Devices& devices_;
  DeviceRecord& record_;
  FirstUse first_use_;
  bool told_not_kept_ = false;
  std::vector<Error> damaged_;  // files of packed weights that are not used any more: `value`, and why
};

}  // namespace gimbal
