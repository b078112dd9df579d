#include "apps/commands/plan_model.h"

#include "apps/commands/open_model.h"
#include "apps/reports/stderr_sink.h"
#include "base/format.h"
#include "engine/drafts.h"
#include "engine/picture_input.h"

namespace gimbal {

Result<Planned> plan_model(const std::string& model, const CommonOptions& common, bool quiet,
                           Result<PlannedModel> (Engine::*plan)(const ModelFile&), const std::string& draft,
                           const std::optional<std::string>& mmproj) {
  auto options = engine_options(common);
  if (!options) return options.error();
  auto source = open_header(model, file_options(common), quiet);
  if (!source) return source.error();
  auto tokenizer = Tokenizer::create(source->file->metadata());
  auto drafts = plan_drafts(backend_registry(), *options, *source, draft, stderr_sink(quiet));
  if (!drafts) return drafts.error();
  std::unique_ptr<PlannedModel> image;
  if (mmproj) {
    auto projector = open_projector(*mmproj);
    if (!projector) return projector.error();
    if (auto ok = check_projector(**projector, *source->file); !ok) return ok.error();
    auto encoder = PictureInput::plan(backend_registry(), *options, **projector, stderr_sink(quiet), plan);
    if (!encoder) return encoder.error();
    image = std::make_unique<PlannedModel>(std::move(*encoder));
    take_pictures(options->run, **projector, {});
    if (!options->run.beside) options->run.beside = &image->plan;
  }
  Engine engine(backend_registry(), std::move(*options), stderr_sink(quiet));
  auto planned = (engine.*plan)(*source);
  if (!planned) return planned.error();
  return Planned{std::move(*drafts), std::move(image), std::move(*planned),
                 tokenizer ? std::move(*tokenizer) : nullptr};
}

std::vector<std::string> placement_lines(const PlannedModel& p) {
  const ModelPlan& b = p.plan;
  const auto why = [&](const Stage& s) { return s.why.empty() ? p.opened.why : with_options(s.why); };
  if (!b.split()) {
    const Stage& only = b.stages[0];
    return {format("all {} layers on {} ({})", b.config.layers, only.device->id(), why(only))};
  }
  std::vector<std::string> lines;
  for (const Stage& stage : b.stages)
    lines.push_back(format("{} on {} ({})", contents(stage), stage.device->id(), why(stage)));
  return lines;
}

}  // namespace gimbal
