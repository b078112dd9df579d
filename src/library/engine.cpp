#include "library/internal.h"

namespace gimbal::v1 {
namespace {

BackendPlaces places(const Options& o) {
  BackendPlaces all = backend_places();
  all.folders.insert(all.folders.begin(), o.plugin_folders.begin(), o.plugin_folders.end());
  return all;
}

// Names and files of chat templates become their texts.
Result<gimbal::ModelFileOptions> file_options_of(ModelOptions m) {
  auto text = gimbal::chat_template_text(m.chat_template);
  if (!text) return to_public(text.error());
  m.chat_template = std::move(*text);
  return gimbal::file_options(m);
}

Result<own::EngineOptions> own_options(const Options& o, const ModelOptions& m) {
  auto e = gimbal::engine_options(o, m);
  if (!e) return to_public(e.error());
  return std::move(*e);
}

// The options for a use of a model: embeddings, or the next tokens of all sequences in one step.
gimbal::Status for_many(own::EngineOptions& options, const ModelOptions& m, const ModelFile& source) {
  if (!m.embed) {
    options.run.batch = std::max(options.run.batch, m.sequences);
    options.run.logit_rows = std::max(m.sequences, std::min(m.logit_rows, options.run.batch));
    return gimbal::Done{};
  }
  auto config = gimbal::configure(*source.file);
  if (!config) return config.error();
  constexpr int kLongestText = 2048;  // in one step: faster, with the same bits
  const int context = m.context ? m.context : gimbal::default_context(*config);
  if (!m.batch) options.run.batch = std::max(options.run.batch, std::min(context, kLongestText));
  options.run = embedding_options(options.run, *config, size_t(m.sequences));
  return gimbal::Done{};
}

// The projector file of a model's options; nullptr: none. Errors: those of open_projector() and
// check_projector(); Usage with 'embed'.
Result<std::shared_ptr<const ProjectorFile>> projector_of(const ModelOptions& m, const ModelFile& source) {
  if (m.mmproj.empty()) return std::shared_ptr<const ProjectorFile>();
  if (m.embed)
    return usage("a model that is loaded with 'embed' takes texts only", "leave 'mmproj' out", "mmproj");
  auto projector = gimbal::open_projector(m.mmproj);
  if (!projector) return to_public(projector.error());
  if (auto ok = gimbal::check_projector(**projector, *source.file); !ok) return to_public(ok.error());
  return std::move(*projector);
}

// Plans a model, and calls `make` with the plan and its public form.
template <class T, class Make>
Result<T> planned(Engine::Impl& engine, const std::string& model, const ModelOptions& m,
                  gimbal::Result<PlannedModel> (own::Engine::*plan)(const ModelFile&), Make make) {
  auto options = own_options(engine.options, m);
  if (!options) return options.error();
  auto file_options = file_options_of(m);
  if (!file_options) return file_options.error();
  auto source = open_model_file(model, *file_options);
  if (!source) return to_public(source.error());
  if (auto ok = for_many(*options, m, *source); !ok) return to_public(ok.error());
  auto drafts = gimbal::plan_drafts(engine.registry, *options, *source, m.draft, events_of(engine.options));
  if (!drafts) return to_public(drafts.error());
  auto projector = projector_of(m, *source);
  if (!projector) return projector.error();
  std::optional<PlannedModel> encoder;
  if (*projector) {
    auto planned =
        PictureInput::plan(engine.registry, *options, **projector, events_of(engine.options), plan);
    if (!planned) return to_public(planned.error());
    encoder = std::move(*planned);
    take_pictures(options->run, **projector, {});
  }
  own::Engine own(engine.registry, std::move(*options), events_of(engine.options));
  auto found = (own.*plan)(*source);
  if (!found) return to_public(found.error());
  ModelPlan to = to_public(*found);
  if (*drafts) {
    to.draft_model = (*drafts)->source.name, to.draft_memory = memory_of((*drafts)->plan);
    if (to.fits)
      if (auto ok = check_memory(*(*drafts)->source.file, (*drafts)->plan); !ok)
        to.fits = false, to.misfit = to_public(ok.error());
  }
  if (encoder) {
    to.image_memory = memory_of(encoder->plan);
    if (to.fits)
      if (auto ok = check_memory(*(*projector)->source.file, encoder->plan); !ok)
        to.fits = false, to.misfit = to_public(ok.error());
  }
  return make(*found, std::move(to));
}

}  // namespace

EventSink events_of(const Options& o) {
  if (!o.events) return {};
  return [sink = o.events](const own::Event& e) { return sink(to_public(e)); };
}

Engine::Impl::Impl(Options o) : options(std::move(o)), registry(places(options)) {}

Engine::Engine(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}

// `name`: for people; empty: the file's.
static Result<Model> load_model(const std::shared_ptr<Engine::Impl>& engine, const Options& o,
                                const std::string& model, const ModelOptions& m, const std::string& name) {
  auto options = own_options(o, m);
  if (!options) return options.error();
  auto file_options = file_options_of(m);
  if (!file_options) return file_options.error();
  auto source = open_model_file(model, *file_options);
  if (!source) return to_public(source.error());
  if (!name.empty()) source->name = name;
  auto tokenizer = own::Tokenizer::create(source->file->metadata());
  if (!tokenizer) return to_public(tokenizer.error());
  if (auto ok = for_many(*options, m, *source); !ok) return to_public(ok.error());
  if (m.embed && gimbal::drafts_at_most(m.draft))
    return Error{Code::Usage, "a model that is loaded with 'embed' generates nothing to draft",
                 "",          "",
                 "draft",     m.draft,
                 "",          {}};
  auto drafts = gimbal::open_drafts(engine->registry, *options, *source, m.draft, events_of(o),
                                    std::clamp(m.sequences, 1, kMostDraftedTexts));
  if (!drafts) return to_public(drafts.error());
  auto projector = projector_of(m, *source);
  if (!projector) return projector.error();
  auto loaded = std::make_shared<Model::Impl>();
  if (*projector) {  // before the text model, as the server does
    auto encoder = PictureInput::open(engine->registry, *options, *projector, events_of(o));
    if (!encoder) return to_public(encoder.error());
    loaded->pictures = std::make_unique<Pictures>();
    loaded->pictures->encoder = std::move(*encoder);
    take_pictures(options->run, **projector, {});
  }
  loaded->registry_owner = engine, loaded->adapters = file_options->lora;
  loaded->engine = std::make_unique<own::Engine>(engine->registry, std::move(*options), events_of(o));
  loaded->chat.emplace(gimbal::ChatTemplate::of(source->file->metadata(), **tokenizer));
  auto on = loaded->engine->load(*source);
  if (!on) return to_public(on.error());
  loaded->loaded = std::move(*on);
  loaded->drafts = std::move(*drafts);
  loaded->tokenizer = std::make_shared<const Tokenizer::Impl>(Tokenizer::Impl{std::move(*tokenizer)});
  if (!m.embed)
    if (auto ok = loaded->open_prefixes(*engine); !ok) return ok.error();
  return Access::model(std::move(loaded));
}

Result<Model> Engine::load(const std::string& model, const ModelOptions& m) {
  return load_model(impl_, impl_->options, model, m, "");
}

Result<Model> Engine::load(const std::string& model, const ModelOptions& m, const DeviceSettings& d) {
  Options o = impl_->options;
  static_cast<DeviceSettings&>(o) = d;
  return load_model(impl_, o, model, m, "");
}

Result<Model> Engine::load(const ModelSpec& spec) {
  Options o = impl_->options;
  if (spec.n_threads) o.threads = spec.n_threads;
  ModelOptions m;
  m.context = spec.ctx_len, m.chat_template = spec.chat_template;
  if (!spec.lora_path.empty()) m.lora.push_back({spec.lora_path});
  return load_model(impl_, o, spec.base_path, m, spec.name);
}

Result<ModelPlan> Engine::plan(const std::string& model, const ModelOptions& m) {
  return planned<ModelPlan>(*impl_, model, m, &own::Engine::plan,
                            [](const PlannedModel&, ModelPlan&& plan) { return std::move(plan); });
}

Result<Explanation> Engine::explain(const std::string& model, const ModelOptions& m) {
  return planned<Explanation>(*impl_, model, m, &own::Engine::plan_verified,
                              [](const PlannedModel& p, ModelPlan&& plan) {
                                Explanation to = to_public(gimbal::explain(p.plan));
                                to.plan = std::move(plan);
                                return to;
                              });
}

Result<Reloaded> Engine::reload_backend(const std::string& plugin) {
  auto options = own_options(impl_->options, {});
  if (!options) return options.error();
  own::Engine engine(impl_->registry, std::move(*options), events_of(impl_->options));
  auto done = engine.reload_backend(plugin);
  if (!done) return to_public(done.error());
  auto code = [](own::Reloaded::Code& c) { return Reloaded::Code{std::move(c.plugin), std::move(c.build)}; };
  return Reloaded{std::move(done->backend), code(done->before),       code(done->now),
                  done->draining,           std::move(done->devices), done->kernels};
}

std::vector<LocalModel> Engine::models() const {
  std::vector<LocalModel> all;
  for (CatalogEntry& e : find_models().entries)
    all.push_back({std::move(e.name), std::move(e.source), std::move(e.path), e.bytes});
  return all;
}

Result<int64_t> Engine::max_context_length(const std::string& model, const ModelOptions& m) {
  return planned<int64_t>(*impl_, model, m, &own::Engine::plan,
                          [](const PlannedModel& p, ModelPlan&&) { return largest_context(p.plan); });
}

}  // namespace gimbal::v1
