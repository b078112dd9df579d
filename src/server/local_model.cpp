#include "server/local_model.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "audit/model_identity.h"
#include "base/format.h"
#include "engine/drafts.h"
#include "engine/prompt_cache.h"
#include "model/arch.h"
#include "runtime/draft_policy.h"
#include "scheduler/saved_prompts.h"
#include "server/picture_service.h"
#include "workers/memory_reservations.h"

namespace gimbal {
namespace {

// A model for embeddings: the same file, planned for hidden states instead of logits.
struct Embedder {
  std::unique_ptr<MemoryReservations::Worker> memory;
  std::unique_ptr<Engine> engine;
  LoadedModelPtr loaded;
  EmbedSettings settings;
};

class LocalModel final : public ComputedModel, public SavedPrompts {
 public:
  LocalModel(Registry& registry, std::string id, const ModelFile& source, const ServingOptions& o,
             const EventSink& events)
      : ComputedModel(std::move(id), source.file),
        registry_(registry),
        source_(source),
        options_(o),
        events_(events) {}
  ~LocalModel() override {
    pictures_ = nullptr;
    end_texts();
  }
  GenerationService* generation() override {
    return pictures_ ? static_cast<GenerationService*>(pictures_.get()) : ComputedModel::generation();
  }
  bool sees() const override { return pictures_ && !encoder_->projector().hears(); }
  bool hears() const override { return pictures_ && encoder_->projector().hears(); }

  Status renew() override {
    return Error{Code::Unsupported, "this server computes itself, with the code that it was started with",
                 "start it again, or let worker processes compute"};
  }

  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) override {
    const std::lock_guard lock(embedding_);
    if (!embedder_.loaded)
      if (auto ok = load_embedder(); !ok) return ok.error();
    return embedder_.engine->embed(embedder_.loaded, texts, embedder_.settings, sink);
  }

  SavedPrompts* saved_prompts() override { return generation() ? this : nullptr; }
  Result<int> kept(std::span<const Token> text) override {
    return with_engine<Result<int>>(
        [&](Scheduler& s) { return s.use_prefix(text, [](const Sequence&) -> Status { return Done{}; }); });
  }
  Result<int> save(std::span<const Token> text, DraftFile& to) override {
    return with_engine<Result<int>>([&](Scheduler& s) {
      return s.use_prefix(text, [&](const Sequence& prefix) { return save_prompt(to, current(), prefix); });
    });
  }
  Result<std::vector<Token>> restore(const InputFile& from) override {
    using Restored = Result<std::vector<Token>>;
    return with_engine<Restored>([&](Scheduler& s) -> Restored {
      std::vector<Token> text;
      const auto into = [&](const InputView& inputs, std::span<const uint32_t> first,
                            const Model::Page& page) {
        text.assign(inputs.tokens().begin(), inputs.tokens().end());
        return s.add_prefix(
            [&](Sequence& empty) { return s.own_model().restore(empty, inputs, first, page); });
      };
      auto restored = restore_prompt(from, "the file", current(), {}, into);
      if (!restored) return restored.error();
      if (!restored->why_not.empty()) return Error{Code::Usage, restored->why_not, ""};
      return text;
    });
  }
  Result<int> erase(std::span<const Token> text) override {
    return with_engine<Result<int>>([&](Scheduler& s) -> Result<int> { return s.drop_prefix(text); });
  }

  Status prepare() {
    auto config = configure(*source_.file);
    if (!config) return config.error();
    EngineOptions o = options_.engine;
    beside_others(o, memory_);
    context_ = o.run.context > 0 ? o.run.context : default_context(*config);
    const bool generates = !options_.embeddings_only && check_generates(*source_.file);
    if (auto ok = generates ? load_generator(std::move(o)) : load_for_embeddings(); !ok) return ok;
    return read_template();
  }

 private:
  Status load_generator(EngineOptions o) {
    o.cache = plan_for_many(o.run, context_, options_.parallel, options_.cache_tokens, options_.models,
                            options_.together);
    auto drafts = open_drafts(registry_, o, source_, options_.draft, events_, kMostDraftedTexts);
    if (!drafts) return drafts.error();
    drafts_ = std::move(*drafts);
    if (auto ok = load_encoder(o); !ok) return ok;
    engine_ = std::make_unique<Engine>(registry_, std::move(o), events_);
    auto loaded = engine_->load(source_);
    if (!loaded) return loaded.error();
    generator_ = std::move(*loaded);
    if (options_.planned) options_.planned(generator_->model->plan());
    if (drafts_->model) uses_devices(drafts_->model->model->plan());
    SchedulerOptions scheduling = options_.scheduler;
    open_prefixes();
    scheduling.prefixes = prefixes_.get();
    scheduling.drafts.failed = drafts_->failed;
    if (drafts_->drafter)
      scheduling.drafts.drafter = [this](const ScheduledRequest&) { return drafts_->drafter(); };
    if (auto ok = generate_on(model_of(generator_), engine_->on_device_lost(generator_), scheduling); !ok)
      return ok;
    if (!encoder_) return Done{};
    uses_devices(encoder_->model().model->plan());
    pictures_ = std::make_unique<PictureService>(
        *ComputedModel::generation(), context_, [this](std::string_view file, const PictureWatch& watch) {
          return rows_of_picture(*encoder_, tokenizer(), file, watch);
        });
    return Done{};
  }

  // Before the text model, whose cache takes what memory is left. `of_text` is set to take pictures.
  Status load_encoder(EngineOptions& of_text) {
    if (options_.mmproj.empty()) return Done{};
    auto projector = open_projector(options_.mmproj);
    if (!projector) return projector.error();
    if (auto ok = check_projector(**projector, *source_.file); !ok) return ok;
    auto encoder = PictureInput::open(registry_, of_text, *projector, events_);
    if (!encoder) return encoder.error();
    encoder_ = std::move(*encoder);
    take_pictures(of_text.run, **projector, {});
    return Done{};
  }

  // A model whose texts cannot be stored is served without.
  void open_prefixes() {
    if (!options_.pages) return;
    const auto without = [&](const std::string& why) {
      options_.pages->note(format("the texts of {} are not stored: {}", id(), why));
    };
    if (source_.file->tensors().adapters().size() != options_.lora.size())
      return without("the digests of its LoRA adapters are unknown");
    auto made = prefix_store_of(source_, options_.lora, *generator_->model, options_.pages, options_.salt);
    if (!made) return without(made.error().message);
    prefixes_ = std::move(*made);
  }

  template <class T, class Work>
  T with_engine(const Work& work) {
    std::optional<T> out;
    scheduler()->between_steps([&](Scheduler* s) {
      if (s) out.emplace(work(*s));
      else out.emplace(Error{Code::Failed, "the model's engine has ended", ""});
    });
    return std::move(*out);
  }
  // After any loss of devices. On the engine's thread.
  const LoadedModel& current() {
    while (generator_->successor) generator_ = generator_->successor;
    return *generator_;
  }

  // Memory that other models of this process have planned and not yet used is not free. `mine` outlives the
  // engine.
  void beside_others(EngineOptions& o, std::unique_ptr<MemoryReservations::Worker>& mine) const {
    if (!options_.memory) return;
    mine = options_.memory->worker(id(), false);
    mine->is_process(getpid());
    o.run.promised = mine->of_others();
    o.before_taking = [&mine](const ModelPlan& plan) -> Status {
      mine->plans(planned_needs(plan));
      return Done{};
    };
  }

  Status load_for_embeddings() {
    if (auto ok = read_tokenizer(); !ok) return ok;
    if (auto ok = load_embedder(); !ok) return ok;
    computed_by(*embedder_.loaded->model);
    return Done{};
  }

  Status load_embedder() {
    auto config = configure(*source_.file);
    if (!config) return config.error();
    auto pooling = pooling_of(source_.file->metadata());
    if (!pooling) return pooling.error();
    embedder_.settings.pooling = pooling->value_or(Pooling::Mean);
    if (embedder_.settings.pooling == Pooling::None) embedder_.settings.pooling = Pooling::Mean;
    EngineOptions o = options_.engine;
    beside_others(o, embedder_.memory);
    o.run.context = context_;
    o.run.batch = std::max(o.run.batch, std::min(context_, 2048));
    o.run = embedding_options(o.run, *config, kEmbeddingsAtOnce);
    embedder_.engine = std::make_unique<Engine>(registry_, std::move(o), events_);
    auto loaded = embedder_.engine->load(source_);
    if (!loaded) return loaded.error();
    embedder_.loaded = std::move(*loaded);
    return Done{};
  }

  static constexpr size_t kEmbeddingsAtOnce = 32;

  Registry& registry_;
  const ModelFile source_;
  const ServingOptions options_;
  const EventSink events_;
  std::unique_ptr<MemoryReservations::Worker> memory_;
  std::unique_ptr<Drafts> drafts_;
  std::unique_ptr<Engine> engine_;
  LoadedModelPtr generator_;
  std::unique_ptr<PrefixStore> prefixes_;
  std::unique_ptr<PictureInput> encoder_;
  std::unique_ptr<PictureService> pictures_;
  std::mutex embedding_;
  Embedder embedder_;
};

}  // namespace

Result<ServedModelPtr> load_local_model(Registry& registry, std::string id, const ModelFile& source,
                                        const ServingOptions& options, const EventSink& events) {
  auto model = std::make_shared<LocalModel>(registry, std::move(id), source, options, events);
  if (auto ok = model->prepare(); !ok) return ok.error();
  return ServedModelPtr(std::move(model));
}

}  // namespace gimbal
