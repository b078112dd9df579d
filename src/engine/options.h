// Options of the engine: where a model runs, how it is checked, and the resources that it gets.
#pragma once
#include <gimbal/settings.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/location.h"
#include "engine/find_model.h"
#include "runtime/memory_check.h"

namespace gimbal {

// Layers of a model for one device, in a list from the first layer on.
struct LayerShare {
  DeviceLocation device;
  int layers = -1;  // -1: the remaining layers; for one entry of the list
};

// Tensors on a device of their own. `why`: the setting that asks for it.
struct TensorOverride {
  std::string pattern;  // files/name_pattern.h
  DeviceLocation device;
  const char* field;  // "override_tensor"
  std::string why;    // "'override_tensor' exps=cpu"
  int layers;         // TensorRule::layers
};

// Made of the public settings by engine_options(). Errors name them: Error::field.
struct EngineOptions {
  std::string backend = "auto";            // or the name of one
  std::optional<int> device;               // its number on the backend; none: the best
  std::vector<std::string> backend_order;  // of automatic choice; the others follow
  std::optional<int> gpu_layers;           // from the last one on; -1: as many as fit; none: the same
  std::vector<LayerShare> split;           // instead of the four above; empty: no split
  std::vector<TensorOverride> overrides;   // the first that a tensor matches decides
  bool experts_may_move = true;            // to the CPU, in place of whole layers that do not fit
  bool strict = false;                     // an error instead of any fallback
  bool allow_software_devices = false;     // those that emulate a GPU
  bool refresh = false;                    // probe every driver again (DeviceRequest::refresh)
  bool tensors = false;                    // of GPUs: also the kernels of the tensor library
  std::optional<int> threads;              // of the CPU; none: one per physical core
  std::optional<std::string> cpu_variant;  // an instruction set; none: the best that the CPU has
  std::optional<int> limit_megabytes;      // of memory for measuring the CPU's speed; none: 1000
  Verify verify = Verify::Auto;
  Packed packed = Packed::Auto;
  RunOptions run;     // context, batch, cache_type, kernels
  CacheBudget cache;  // overrides run.cache_positions, which is the minimum
  // Called before a plan that fits takes its memory. Engine::load returns its error. May be empty.
  std::function<Status(const ModelPlan&)> before_taking;
};

// Converts the settings of a program or a command line to the options of the engine.

// Errors: Usage (out-of-range), naming the first setting outside its range in settings_table.h.
Result<EngineOptions> engine_options(const DeviceSettings&, const ModelOptions&);
ModelFileOptions file_options(const ModelOptions&);

}  // namespace gimbal
