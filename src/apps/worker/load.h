// Loads a model on the worker's only backend, through the engine's loader: verified, measured, with packed
// weights if available. Chooses no devices.
#pragma once
#include <memory>
#include <string>

#include "engine/loader.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::worker {

// A model's file, or its path.
struct Source {
  Source(const char* p) : path(p) {}
  Source(std::string p) : path(std::move(p)) {}
  Source(std::shared_ptr<const ModelSource> f) : path(f->path()), file(std::move(f)) {}
  std::string path;
  std::shared_ptr<const ModelSource> file = {};  // nullptr: it is opened
};

// Members are in the order of their dependencies.
struct Loaded {
  LoadedModelPtr on;
  std::unique_ptr<Tokenizer> tokenizer;
};

// Ignores the device choice in `options`: backend, device, backend_order, gpu_layers, split, overrides.
// Errors: those of the file and of Loader::load; NoBackend if device `index` does not exist or computes wrong
// results. are, and when the device computes wrong.
Result<Loaded> load_on(const gimbal_backend& table, const Source&, int index, const EngineOptions& options,
                       const EventSink& events = {});

// A Backend must have
//   static constexpr const char* kName;      // "cuda"; for worker.h
//   static constexpr bool kHasGpus;          // false for the CPU, which is one device
//   static const gimbal_backend& table();
// A GPU index is required, from 0: the other overload does not compile. Errors: those of load_on().
template <class Backend>
Result<Loaded> load(const Source& from, const EngineOptions& options = {},
                    const EventSink& events = {}) requires(!Backend::kHasGpus) {
  return load_on(Backend::table(), from, 0, options, events);
}
template <class Backend>
Result<Loaded> load(const Source& from, int gpu, const EngineOptions& options = {},
                    const EventSink& events = {}) requires(Backend::kHasGpus) {
  return load_on(Backend::table(), from, gpu, options, events);
}

}  // namespace gimbal::worker
