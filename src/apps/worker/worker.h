// The command line of gimbal-worker-<name>: generates text from a model file on the one backend it holds.
#pragma once
#include <functional>

#include "apps/worker/engine.h"

namespace gimbal::worker {

// What the command line needs to know of the build.
struct About {
  const char* backend;
  bool has_gpus;
  // Engine<Backend>::load, and then `use` on what it gave. `gpu` counts only where there are GPUs.
  using Use = std::function<Result<int>(Model&, const Tokenizer&, double load_seconds)>;
  std::function<Result<int>(const std::string& path, int gpu, const Settings&, const Use&)> load;
};

// Everything that does not depend on the backend. Never throws; answers the exit code (apps/exit_code.h).
int run(const About& about, int argc, char** argv);

template <class Backend>
int run(int argc, char** argv) {
  const auto load = [](const std::string& path, [[maybe_unused]] int gpu, const Settings& settings,
                       const About::Use& use) -> Result<int> {
    auto engine = [&] {
      if constexpr (Backend::kHasGpus) return Engine<Backend>::load(path, gpu, settings);
      else return Engine<Backend>::load(path, settings);
    }();
    if (!engine) return engine.error();
    return use(engine->model(), engine->tokenizer(), engine->load_seconds());
  };
  return run(About{Backend::kName, Backend::kHasGpus, load}, argc, argv);
}

}  // namespace gimbal::worker
