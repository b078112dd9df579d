#include "apps/open_engine.h"

#include <chrono>

#include "apps/terminal.h"

namespace gimbal {

Result<PlannedModel> plan_model(ModelFile source, const EngineOptions& options, const RunOptions& run,
                                bool quiet) {
  auto opened = open_device(options, quiet);
  if (!opened) return opened.error();
  auto blueprint = make_blueprint(*source.file, *opened->device, run);
  if (!blueprint) return blueprint.error();
  return PlannedModel{std::move(source), std::move(*opened), std::move(*blueprint)};
}

Result<LoadedModel> load_model(ModelFile source, const EngineOptions& options, const RunOptions& run,
                               bool quiet) {
  const auto begin = std::chrono::steady_clock::now();
  auto planned = plan_model(std::move(source), options, run, quiet);
  if (!planned) return planned.error();
  const int context = planned->blueprint.options.context, trained = planned->blueprint.config.context;
  if (context > trained && !quiet)
    note(
        format("note: --ctx {} is more than the {} positions that the model was trained on; its text may get "
               "worse beyond them",
               context, trained));
  Progress bar("loading", !quiet);
  auto model = Model::load(std::move(planned->blueprint),
                           [&](uint64_t done, uint64_t total) { return bar.update(done, total), true; });
  if (!model) return model.error();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return LoadedModel{std::move(planned->source), std::move(planned->opened), std::move(*model),
                     taken.count()};
}

}  // namespace gimbal
