#include "apps/open_engine.h"

#include <chrono>

#include "apps/first_use.h"
#include "apps/terminal.h"

namespace gimbal {

Result<LoadedModel> load_model(ModelFile source, const EngineOptions& options, const RunOptions& run,
                               bool quiet) {
  const auto begin = std::chrono::steady_clock::now();
  auto planned = plan_verified(std::move(source), options, run, quiet);
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
  if (auto ok = try_out(**model, planned->source, options, quiet); !ok) return ok.error();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  auto receipt = (*model)->receipt();
  return LoadedModel{std::move(planned->source),
                     std::move(planned->opened),
                     std::move(planned->others),
                     std::move(*model),
                     taken.count(),
                     receipt ? std::move(*receipt) : std::vector<ReceiptLine>()};
}

}  // namespace gimbal
