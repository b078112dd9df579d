#include "server/local_model.h"

#include <algorithm>
#include <mutex>

#include "base/json.h"
#include "engine/drafts.h"
#include "engine/explanation.h"
#include "model/arch.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

Json ops_of(const Model& model) {
  Json list = Json::array();
  for (const ReceiptLine& l : model.receipt())
    list.push_back({{"op", l.op},
                    {"format", l.format},
                    {"device", l.device},
                    {"kernel", l.kernel},
                    {"reason", l.why},
                    {"ops", l.ops}});
  return list;
}

std::string explained(const ModelPlan& plan) { return Json::array({explanation(plan)}).dump(); }

// A model for embeddings: the same file, planned for hidden states in place of logits.
struct Embedder {
  std::unique_ptr<Engine> engine;
  LoadedModelPtr loaded;
  EmbedSettings settings;
};

class LocalModel final : public ServedModel {
 public:
  LocalModel(Registry& registry, std::string id, const ModelFile& source, const ServingOptions& o,
             const EventSink& events)
      : registry_(registry), id_(std::move(id)), source_(source), options_(o), events_(events) {}

  const std::string& id() const override { return id_; }
  const Gguf& file() const override { return *source_.file; }
  const Tokenizer& tokenizer() const override { return scheduler_ ? scheduler_->tokenizer() : *tokenizer_; }
  const ChatTemplate& chat() const override { return *chat_; }
  int context() const override { return context_; }
  Json ops() const override { return ops_; }
  Status renew() override {
    return Error{Code::Unsupported, "this server computes itself, with the code that it was started with",
                 "start it again, or without --workers none"};
  }
  std::string explanations() const override { return explanations_; }
  GenerationService* generation() override { return scheduler_.get(); }
  uint64_t device_bytes() const override { return bytes_; }
  std::vector<SchedulerNumbers> numbers() override {
    if (!scheduler_) return {};
    return {scheduler_->numbers()};
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
    context_ = o.run.context > 0 ? o.run.context : default_context(*config);
    if (!options_.embeddings_only && check_generates(*source_.file)) {
      o.run.context = context_;
      o.run.sequences = o.run.logit_rows = options_.parallel;
      o.run.batch = std::max(o.run.batch, options_.parallel);
      o.run.cache_positions = options_.cache_tokens ? options_.cache_tokens : context_;
      const int64_t whole = int64_t(context_) * options_.parallel;
      if (!options_.cache_tokens)
        o.cache = {whole, std::min(whole, std::max(int64_t(context_) * 4, kModestCache)), options_.models};
      auto drafts = open_drafts(registry_, o, source_, options_.draft, events_, kDraftedTexts);
      if (!drafts) return drafts.error();
      drafts_ = std::move(*drafts);
      engine_ = std::make_unique<Engine>(registry_, std::move(o), events_);
      auto loaded = engine_->load(source_);
      if (!loaded) return loaded.error();
      ops_ = ops_of(*(*loaded)->model);
      explanations_ = explained((*loaded)->model->plan());
      if (options_.planned) options_.planned((*loaded)->model->plan());
      for (const LoadedModelPtr& m : {*loaded, drafts_->model})
        for (const MemoryUse& u : m ? memory_uses(m->model->plan()) : std::vector<MemoryUse>())
          if (u.device) bytes_ += u.sum.total();
      SchedulerOptions scheduling = options_.scheduler;
      scheduling.drafts.failed = drafts_->failed;
      if (drafts_->drafter)
        scheduling.drafts.drafter = [this](const Generation&) { return drafts_->drafter(); };
      auto scheduler = Scheduler::create(*engine_, *loaded, scheduling);
      if (!scheduler) return scheduler.error();
      scheduler_ = std::move(*scheduler);
      context_ = std::min(context_, scheduler_->capacity());
    } else {
      auto tokenizer = Tokenizer::create(*source_.file);
      if (!tokenizer) return tokenizer.error();
      tokenizer_ = std::move(*tokenizer);
      if (auto ok = load_embedder(); !ok) return ok.error();
      ops_ = ops_of(*embedder_.loaded->model);
      explanations_ = explained(embedder_.loaded->model->plan());
    }
    auto chat = ChatTemplate::of(*source_.file, tokenizer());
    if (!chat) return chat.error();
    chat_ = std::make_unique<ChatTemplate>(std::move(*chat));
    return Done{};
  }

 private:
  Status load_embedder() {
    auto config = configure(*source_.file);
    if (!config) return config.error();
    auto pooling = pooling_of(*source_.file);
    if (!pooling) return pooling.error();
    embedder_.settings.pooling = pooling->value_or(Pooling::Mean);
    if (embedder_.settings.pooling == Pooling::None) embedder_.settings.pooling = Pooling::Mean;
    EngineOptions o = options_.engine;
    o.run.context = context_;
    o.run.batch = std::max(o.run.batch, std::min(context_, 2048));
    o.run = embedding_options(o.run, *config, kTextsAtOnce);
    embedder_.engine = std::make_unique<Engine>(registry_, std::move(o), events_);
    auto loaded = embedder_.engine->load(source_);
    if (!loaded) return loaded.error();
    embedder_.loaded = std::move(*loaded);
    return Done{};
  }

  static constexpr size_t kTextsAtOnce = 32;      // of embeddings
  static constexpr int64_t kModestCache = 32768;  // tokens, or 4 contexts where these are more
  // That a model drafts for: with more, rows are used up by the texts themselves.
  static constexpr int kDraftedTexts = 4;

  Registry& registry_;
  const std::string id_;
  const ModelFile source_;
  const ServingOptions options_;
  const EventSink events_;
  int context_ = 0;
  uint64_t bytes_ = 0;
  Json ops_;
  std::string explanations_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Drafts> drafts_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ChatTemplate> chat_;
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
