// The command line of gimbal-worker-<name>: generates text from a model file on its only backend, or serves
// the model.
#pragma once
#include <functional>

#include "apps/worker/load.h"

namespace gimbal::worker {

// The build's properties, for the command line.
struct About {
  const char* backend;
  bool has_gpus;
  // load<Backend>; `gpu` is ignored for backends without GPUs.
  std::function<Result<Loaded>(const Source&, int gpu, const EngineOptions&, const EventSink&)> load;
};

// All code that does not depend on the backend. Never throws; returns the exit code (apps/exit_code.h).
int run(const About& about, int argc, char** argv);

template <class Backend>
int run(int argc, char** argv) {
  const auto of_backend = [](const Source& from, [[maybe_unused]] int gpu, const EngineOptions& options,
                             const EventSink& events) {
    if constexpr (Backend::kHasGpus) return load<Backend>(from, gpu, options, events);
    else return load<Backend>(from, options, events);
  };
  return run(About{Backend::kName, Backend::kHasGpus, of_backend}, argc, argv);
}

}  // namespace gimbal::worker
