#include "apps/commands/open_model.h"

#include "apps/reports/stderr_sink.h"
#include "base/format.h"
#include "engine/drafts.h"
#include "engine/picture_input.h"
#include "files/ternary_layout.h"

namespace gimbal {
namespace {

bool is_to_be_fetched(const std::string& model, const Result<FoundModel>& found) {
  return is_address(model) && !found && found.error().reason == std::string_view(reason::kNotFetched);
}

PullConsole::To told(bool quiet) { return quiet ? PullConsole::To::Nobody : PullConsole::To::People; }

}  // namespace

Result<ModelFile> header_of(const Pull& pull, const ModelFileOptions& options) {
  auto ternary = ternary_choice(options.kernel_config);
  if (!ternary) return ternary.error();
  return model_file(pull.address().name(), pull.files()[0].place.path, pull.header(*ternary), options);
}

Result<ModelFile> open_header(const std::string& model, const ModelFileOptions& options, bool quiet) {
  if (!is_to_be_fetched(model, find_model(model))) return open_model_file(model, options);
  struct Held {  // in the order in which they depend on each other
    explicit Held(PullConsole::To to) : console(to) {}
    PullConsole console;
    std::unique_ptr<Pull> pull;
    std::shared_ptr<const ModelSource> file;
  };
  auto held = std::make_shared<Held>(told(quiet));
  auto pull = Pull::resolve(model, {}, held->console);
  if (!pull) return pull.error();
  held->pull = std::move(*pull);
  auto source = header_of(*held->pull, options);
  if (!source) return source.error();
  held->file = std::move(source->file);
  source->file = std::shared_ptr<const ModelSource>(held, held->file.get());
  return source;
}

Result<ModelFile> open_model(const std::string& model, const CommonOptions& common, bool quiet) {
  const ModelFileOptions options = file_options(common);
  if (!is_to_be_fetched(model, find_model(model))) return open_model_file(model, options);
  auto wanted = engine_options(common);
  if (!wanted) return wanted.error();
  PullConsole console(told(quiet));
  auto pull = Pull::resolve(model, {}, console);
  if (!pull) return pull.error();
  if (!quiet)
    note(format("{} is not on this machine yet: downloading {} of {}", printable((*pull)->address().name()),
                human_bytes((*pull)->missing()), printable((*pull)->files()[0].name)));
  if (auto header = header_of(**pull, options)) {
    const FitReport o = fit_report(*header, std::move(*wanted));
    if (!quiet) note(o.text);
    if (!o.fits) return o.fits.error();
  } else if (header.error().code != Code::Unsupported) {
    return header.error();
  }
  if (auto path = (*pull)->fetch(); !path) return path.error();
  return open_model_file(model, options);
}

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
