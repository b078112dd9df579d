// The command line of gimbal-worker-<name>: generates text from a model file on the one backend it holds, or
// serves it.
#pragma once
#include <functional>

#include "apps/worker/engine.h"

namespace gimbal::worker {

// What the command line needs to know of the build.
struct About {
  const char* backend;
  bool has_gpus;
  // Engine<Backend>::load; `gpu` counts only where there are GPUs.
  std::function<Result<Loaded>(const Source&, int gpu, const Settings&)> load;
};

// Everything that does not depend on the backend. Never throws; answers the exit code (apps/exit_code.h).
int run(const About& about, int argc, char** argv);

template <class Backend>
int run(int argc, char** argv) {
  const auto load = [](const Source& from, [[maybe_unused]] int gpu,
                       const Settings& settings) -> Result<Loaded> {
    auto engine = [&] {
      if constexpr (Backend::kHasGpus) return Engine<Backend>::load(from, gpu, settings);
      else return Engine<Backend>::load(from, settings);
    }();
    if (!engine) return engine.error();
    return std::move(*engine).take();
  };
  return run(About{Backend::kName, Backend::kHasGpus, load}, argc, argv);
}

}  // namespace gimbal::worker
