#include "server/loaded_models.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "base/sha256.h"
#include "model/arch.h"
#include "model/embedded_model.h"
#include "runtime/memory_check.h"

namespace gimbal {
namespace {

// "tiny-q8_0" of "/models/tiny-q8_0.gguf": no path leaves this machine.
std::string id_of(const ModelFile& f) {
  std::string id =
      f.path.empty() || f.name.find('/') == f.name.npos ? f.name : f.name.substr(f.name.rfind('/') + 1);
  if (id.ends_with(".gguf") || id.ends_with(".GGUF")) id.resize(id.size() - 5);
  return id;
}

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

// A model for embeddings: the same file, planned for hidden states in place of logits.
struct Embedder {
  std::unique_ptr<Engine> engine;
  LoadedModelPtr loaded;
  EmbedSettings settings;
};

class Served final : public ServedModel {
 public:
  static Result<std::shared_ptr<Served>> load(Registry& registry, std::string id, const ModelFile& source,
                                              const ServingOptions& o, const EventSink& events) {
    auto self = std::shared_ptr<Served>(new Served(registry, std::move(id), source, o, events));
    if (auto ok = self->prepare(); !ok) return ok.error();
    return self;
  }

  const std::string& id() const override { return id_; }
  const Gguf& file() const override { return *source_.file; }
  const Tokenizer& tokenizer() const override { return scheduler_ ? scheduler_->tokenizer() : *tokenizer_; }
  const ChatTemplate& chat() const override { return *chat_; }
  int context() const override { return context_; }
  const Json& ops() const override { return ops_; }
  GenerationService* generation() override { return scheduler_.get(); }
  const Scheduler* scheduler() const { return scheduler_.get(); }
  uint64_t device_bytes() const { return bytes_; }

  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) override {
    const std::lock_guard lock(embedding_);
    if (!embedder_.loaded)
      if (auto ok = load_embedder(); !ok) return ok.error();
    return embedder_.engine->embed(embedder_.loaded, texts, embedder_.settings, sink);
  }

 private:
  Served(Registry& registry, std::string id, const ModelFile& source, const ServingOptions& o,
         const EventSink& events)
      : registry_(registry), id_(std::move(id)), source_(source), options_(o), events_(events) {}

  Status prepare() {
    auto config = configure(*source_.file);
    if (!config) return config.error();
    EngineOptions o = options_.engine;
    context_ = o.run.context > 0 ? o.run.context : default_context(*config);
    if (check_generates(*source_.file)) {
      o.run.context = context_;
      o.run.sequences = o.run.logit_rows = options_.parallel;
      o.run.batch = std::max(o.run.batch, options_.parallel);
      o.run.cache_positions =
          options_.cache_tokens ? options_.cache_tokens : default_cache_tokens(context_, options_.parallel);
      engine_ = std::make_unique<Engine>(registry_, std::move(o), events_);
      auto loaded = engine_->load(source_);
      if (!loaded) return loaded.error();
      ops_ = ops_of(*(*loaded)->model);
      for (const MemoryUse& u : memory_uses((*loaded)->model->plan()))
        if (u.device) bytes_ += u.sum.total();
      auto scheduler = Scheduler::create(*engine_, *loaded, options_.scheduler);
      if (!scheduler) return scheduler.error();
      scheduler_ = std::move(*scheduler);
      context_ = std::min(context_, scheduler_->capacity());
    } else {
      auto tokenizer = Tokenizer::create(*source_.file);
      if (!tokenizer) return tokenizer.error();
      tokenizer_ = std::move(*tokenizer);
      if (auto ok = load_embedder(); !ok) return ok.error();
      ops_ = ops_of(*embedder_.loaded->model);
    }
    auto chat = ChatTemplate::of(*source_.file, tokenizer());
    if (!chat) return chat.error();
    chat_ = std::make_unique<ChatTemplate>(std::move(*chat));
    return Done{};
  }

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

  static constexpr size_t kTextsAtOnce = 32;

  Registry& registry_;
  const std::string id_;
  const ModelFile source_;
  const ServingOptions& options_;
  const EventSink& events_;
  int context_ = 0;
  uint64_t bytes_ = 0;
  Json ops_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ChatTemplate> chat_;
  std::mutex embedding_;
  Embedder embedder_;
};

}  // namespace

int64_t default_cache_tokens(int context, int parallel) {
  return std::min<int64_t>(int64_t(context) * parallel, std::max<int64_t>(int64_t(context) * 4, 32768));
}

struct LoadedModels::Entry {
  std::string id, name;  // `name`: as it was named at the start
  ModelFile source;
  int64_t created = 0;
  std::mutex digesting;  // of the next one
  std::string digest;
  std::mutex loading;  // one at a time; then `mutex`
  std::mutex mutex;    // of the two below
  std::shared_ptr<Served> served;
  double used = 0;

  std::shared_ptr<Served> loaded() {
    const std::lock_guard lock(mutex);
    if (served) used = now();
    return served;
  }
};

LoadedModels::LoadedModels(Registry& registry, ServingOptions options, EventSink events)
    : registry_(registry), options_(std::move(options)), events_(std::move(events)) {}

LoadedModels::~LoadedModels() = default;

Result<std::unique_ptr<LoadedModels>> LoadedModels::create(Registry& registry, std::vector<ModelFile> files,
                                                           ServingOptions options, EventSink events) {
  std::unique_ptr<LoadedModels> self(new LoadedModels(registry, std::move(options), std::move(events)));
  for (ModelFile& f : files) {
    auto e = std::make_unique<Entry>();
    e->id = id_of(f);
    e->name = f.name;
    if (self->find(e->id))
      return Error{Code::Usage,
                   format("two models would have the name '{}'", e->id),
                   "rename one of the files",
                   "",
                   "model",
                   e->id};
    struct stat s {};
    e->created =
        !f.path.empty() && stat(f.path.c_str(), &s) == 0 ? int64_t(s.st_mtime) : int64_t(std::time(nullptr));
    e->source = std::move(f);
    self->entries_.push_back(std::move(e));
  }
  return self;
}

LoadedModels::Entry* LoadedModels::find(const std::string& id) {
  for (const auto& e : entries_)
    if (e->id == id || e->id + ":latest" == id) return e.get();
  return nullptr;
}

std::vector<KnownModel> LoadedModels::list() {
  std::vector<KnownModel> all;
  for (const auto& e : entries_) {
    const std::lock_guard lock(e->mutex);
    all.push_back({e->id, e->source.path, e->source.file->file_bytes(), e->created, e->served != nullptr,
                   e->served ? e->served->device_bytes() : 0});
  }
  return all;
}

Result<ServedModelPtr> LoadedModels::get(const std::string& id) {
  Entry* e = find(id);
  if (!e)
    return Error{Code::NotFound, format("there is no model '{}'", id), "", reason::kNoSuchModel, "model", id};
  if (auto there = e->loaded()) return ServedModelPtr(std::move(there));
  const std::lock_guard loading(e->loading);
  if (auto there = e->loaded()) return ServedModelPtr(std::move(there));
  for (;;) {
    auto made = Served::load(registry_, e->id, e->source, options_, events_);
    if (!made) {
      // Whoever was not asked for the longest time makes room.
      if (made.error().code == Code::OutOfMemory && give_back(0)) continue;
      return made.error();
    }
    const std::lock_guard lock(e->mutex);
    e->served = *made;
    e->used = now();
    return ServedModelPtr(std::move(*made));
  }
}

Result<std::shared_ptr<const Gguf>> LoadedModels::file(const std::string& id) {
  Entry* e = find(id);
  if (!e)
    return Error{Code::NotFound, format("there is no model '{}'", id), "", reason::kNoSuchModel, "model", id};
  return e->source.file;
}

std::string LoadedModels::digest(const std::string& id) {
  Entry* e = find(id);
  if (!e) return {};
  const std::lock_guard lock(e->digesting);
  if (e->digest.empty()) {
    Sha256 sum;
    if (e->source.path.empty()) {
      const Bytes all = embedded_model();
      sum.add({reinterpret_cast<const char*>(all.data()), all.size()});
    } else {
      FILE* file = std::fopen(e->source.path.c_str(), "rb");
      if (!file) return {};
      std::string piece(1 << 20, '\0');
      while (const size_t n = std::fread(piece.data(), 1, piece.size(), file)) sum.add({piece.data(), n});
      const bool whole = !std::ferror(file);
      std::fclose(file);
      if (!whole) return {};
    }
    e->digest = sum.hex();
  }
  return e->digest;
}

std::vector<SchedulerNumbers> LoadedModels::numbers() {
  std::vector<SchedulerNumbers> all;
  for (const auto& e : entries_) {
    const std::lock_guard lock(e->mutex);
    if (e->served && e->served->scheduler()) all.push_back(e->served->scheduler()->numbers());
  }
  return all;
}

// The one that was not asked for the longest time, if it was not for so long and nobody has it. False: none.
bool LoadedModels::give_back(double unused_for) {
  Entry* oldest = nullptr;
  for (const auto& e : entries_) {
    const std::lock_guard lock(e->mutex);
    if (e->served && e->served.use_count() == 1 && now() - e->used >= unused_for &&
        (!oldest || e->used < oldest->used))
      oldest = e.get();
  }
  if (!oldest) return false;
  std::shared_ptr<Served> last;
  {
    const std::lock_guard lock(oldest->mutex);
    if (oldest->served.use_count() > 1) return true;  // somebody was faster
    last = std::move(oldest->served);
  }
  return true;  // and it is gone with `last`
}

void LoadedModels::tidy() {
  if (options_.keep_alive > 0)
    while (give_back(options_.keep_alive)) {}
}

}  // namespace gimbal
