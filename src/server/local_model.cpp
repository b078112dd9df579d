#include "server/local_model.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "engine/drafts.h"
#include "model/arch.h"
#include "runtime/draft_length.h"
#include "workers/together.h"

namespace gimbal {
namespace {

// A model for embeddings: the same file, planned for hidden states instead of logits.
struct Embedder {
  std::unique_ptr<PromisedMemory::Worker> memory;
  std::unique_ptr<Engine> engine;
  LoadedModelPtr loaded;
  EmbedSettings settings;
};

class LocalModel final : public ComputedModel {
 public:
  LocalModel(Registry& registry, std::string id, const ModelFile& source, const ServingOptions& o,
             const EventSink& events)
      : ComputedModel(std::move(id), source.file),
        registry_(registry),
        source_(source),
        options_(o),
        events_(events) {}
  ~LocalModel() override { end_texts(); }

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
    engine_ = std::make_unique<Engine>(registry_, std::move(o), events_);
    auto loaded = engine_->load(source_);
    if (!loaded) return loaded.error();
    generator_ = std::move(*loaded);
    if (options_.planned) options_.planned(generator_->model->plan());
    if (drafts_->model) uses_devices(drafts_->model->model->plan());
    SchedulerOptions scheduling = options_.scheduler;
    scheduling.drafts.failed = drafts_->failed;
    if (drafts_->drafter)
      scheduling.drafts.drafter = [this](const Generation&) { return drafts_->drafter(); };
    return generate_on(model_of(generator_), engine_->on_device_lost(generator_), scheduling);
  }

  // Memory that other models of this process have planned and not yet used is not free. `mine` outlives the
  // engine.
  void beside_others(EngineOptions& o, std::unique_ptr<PromisedMemory::Worker>& mine) const {
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
  std::unique_ptr<PromisedMemory::Worker> memory_;
  std::unique_ptr<Drafts> drafts_;
  std::unique_ptr<Engine> engine_;
  LoadedModelPtr generator_;
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
