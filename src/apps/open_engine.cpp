#include "apps/open_engine.h"

#include <chrono>

#include "apps/first_use.h"
#include "apps/terminal.h"

namespace gimbal {

namespace {

// The devices of a plan that another one can stand in for; empty: there is nobody else.
std::string replaceable(const PlannedModel& p, std::vector<std::pair<std::string, Error>>& refused,
                        const Error& why) {
  std::string all;
  for (const Part& part : p.blueprint.parts) {
    if (std::string(part.device->backend()) == "cpu") continue;
    refused.emplace_back(part.device->id(), why);
    all += (all.empty() ? "" : ", ") + part.device->id();
  }
  return all;
}

void warn_of_long_context(const Blueprint& b) {
  if (b.options.context <= b.config.context) return;
  note(
      format("note: --ctx {} is more than the {} positions that the model was trained on; its text may get "
             "worse beyond them",
             b.options.context, b.config.context));
}

Result<std::unique_ptr<Model>> load_and_try(const PlannedModel& p, const EngineOptions& options, bool quiet) {
  Progress bar("loading", !quiet);
  auto model =
      Model::load(p.blueprint, [&](uint64_t done, uint64_t total) { return bar.update(done, total), true; });
  if (!model) return model.error();
  if (auto ok = try_out(**model, p.source, options, quiet); !ok) return ok.error();
  return model;
}

}  // namespace

Result<LoadedModel> load_model(ModelFile source, EngineOptions options, const RunOptions& run, bool quiet) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> told;
  for (;;) {
    auto planned = plan_verified(std::move(source), options, run, quiet);
    if (!planned) return planned.error();
    if (told.empty() && !quiet) warn_of_long_context(planned->blueprint);
    auto model = load_and_try(*planned, options, quiet);
    if (!model) {
      // The plan fitted, the driver disagreed; or what it computes is wrong: the next device may do better.
      const Code code = model.error().code;
      const bool device = code == Code::OutOfMemory || code == Code::DeviceLost || code == Code::Failed;
      std::string gone;
      if (device && !options.strict) gone = replaceable(*planned, options.refused, model.error());
      if (gone.empty()) return model.error();
      told.push_back(format("{} is not used: {}", gone, printable(model.error().message)));
      note("note: " + told.back());
      source = std::move(planned->source);
      continue;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    auto receipt = (*model)->receipt();
    std::vector<std::string>& all = planned->opened.fallbacks;
    all.insert(all.end(), told.begin(), told.end());
    return LoadedModel{std::move(planned->source),
                       std::move(planned->opened),
                       std::move(planned->others),
                       std::move(*model),
                       taken.count(),
                       std::move(receipt)};
  }
}

}  // namespace gimbal
