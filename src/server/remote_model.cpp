#include "server/remote_model.h"

#include <algorithm>
#include <mutex>

#include "engine/picture_input.h"
#include "scheduler/saved_prompts.h"
#include "workers/memory_reservations.h"

namespace gimbal {
namespace {

// Several services as one: each request goes to the one with the fewest. A request's answer does not depend
// on which.
class ServicePool final : public GenerationService {
 public:
  explicit ServicePool(std::vector<GenerationService*> services)
      : services_(std::move(services)), running_(services_.size()) {}

  Status submit(uint64_t id, GenerationRequest request, GenerationSink sink) override {
    size_t to = 0;
    {
      const std::lock_guard lock(mutex_);
      to = size_t(std::min_element(running_.begin(), running_.end()) - running_.begin());
      running_[to]++;
    }
    GenerationSink counted{
        std::move(sink.token),
        [this, to, end = std::move(sink.end)](const GenerationEnd& e) { done(to), end(e); },
        [this, to, failed = std::move(sink.failed)](const Error& e) { done(to), failed(e); },
        std::move(sink.begun), std::move(sink.scored)};
    const Status queued = services_[to]->submit(id, std::move(request), std::move(counted));
    if (!queued) done(to);
    return queued;
  }

  // Services without this request pass it over.
  void cancel(uint64_t id) override {
    for (GenerationService* service : services_) service->cancel(id);
  }

 private:
  void done(size_t service) {
    const std::lock_guard lock(mutex_);
    running_[service]--;
  }

  const std::vector<GenerationService*> services_;
  std::mutex mutex_;
  std::vector<int> running_;  // requests of each
};

class RemoteModel final : public ServedModel, public SavedPrompts {
 public:
  RemoteModel(std::string id, const ModelFile& source, RemoteOptions options)
      : id_(std::move(id)), source_(source), options_(std::move(options)) {}

  Status start() {
    auto tokenizer = Tokenizer::create(source_.file->metadata());
    if (!tokenizer) return tokenizer.error();
    tokenizer_ = std::move(*tokenizer);
    auto chat = ChatTemplate::of(source_.file->metadata(), *tokenizer_);
    if (!chat) return chat.error();
    chat_ = std::make_unique<ChatTemplate>(std::move(*chat));
    if (const std::string& path = options_.loads[0].settings.model.mmproj; !path.empty()) {
      auto projector = open_projector(path);
      if (!projector) return projector.error();
      projector_ = std::move(*projector);
    }
    kernels_.resize(options_.loads.size());
    const auto turn = options_.memory->turn_to_load();
    const bool several = options_.loads.size() > 1;
    for (size_t i = 0; i < options_.loads.size(); i++) {
      WorkerSettings s = settings(i, several);
      s.asks_for_memory = several;
      auto started = RemoteService::start(std::move(s));
      if (!started) return started.error();
      workers_.push_back(std::move(*started));
    }
    if (auto ok = take_memory(); !ok) return ok;
    std::vector<GenerationService*> services;
    for (const auto& w : workers_) {
      if (auto ok = w->wait_ready(); !ok) return ok;
      const auto hello = w->facts().hello;
      context_ = context_ ? std::min(context_, hello->context) : hello->context;
      for (const DeviceUse& d : hello->devices) bytes_ += d.bytes;
      if (hello->generates) services.push_back(w.get()), writing_.push_back(w.get());
    }
    if (!services.empty()) pool_ = std::make_unique<ServicePool>(std::move(services));
    return Done{};
  }

  const std::string& id() const override { return id_; }
  const ModelSource& file() const override { return *source_.file; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate& chat() const override { return *chat_; }
  int context() const override { return context_; }
  bool sees() const override { return projector_ && !projector_->hears(); }
  bool hears() const override { return projector_ && projector_->hears(); }
  int texts_at_once() const override {
    int n = 0;
    for (const auto& w : workers_) n += w->facts().hello->explanation.sequences;
    return n;
  }
  std::vector<ReceiptLine> kernels() const override {
    const std::lock_guard lock(kernels_mutex_);
    std::vector<ReceiptLine> all;
    for (const auto& of_one : kernels_) all.insert(all.end(), of_one.begin(), of_one.end());
    return all;
  }
  Status renew() override {
    const std::lock_guard lock(embedding_);
    std::vector<RemoteService*> all;
    for (const auto& w : workers_) all.push_back(w.get());
    if (embedder_) all.push_back(embedder_.get());
    for (RemoteService* one : all) one->replace();
    Status ok = Done{};
    for (RemoteService* one : all)
      if (Status ready = one->wait_ready(); !ready) ok = ready;
    return ok;
  }
  uint64_t device_bytes() const override { return bytes_; }
  std::vector<Explanation> explanations() const override {
    std::vector<Explanation> all;
    for (const auto& w : workers_) all.push_back(w->facts().hello->explanation);
    return all;
  }
  std::vector<DeviceUse> devices() const override {
    std::vector<DeviceUse> all;
    for (const auto& w : workers_)
      for (const auto hello = w->facts().hello; const DeviceUse& d : hello->devices) all.push_back(d);
    return all;
  }
  GenerationService* generation() override { return pool_.get(); }
  SavedPrompts* saved_prompts() override { return writing_.empty() ? nullptr : this; }
  Result<int> kept(std::span<const Token> text) override {
    auto most = most_of(text);
    return most ? Result<int>(most->second) : most.error();
  }
  Result<int> save(std::span<const Token> text, DraftFile& to) override {
    auto most = most_of(text);
    if (!most) return most.error();
    return most->second > 0 ? most->first->save(text, to) : Result<int>(0);
  }
  // Into each worker: the next request may go to any.
  Result<std::vector<Token>> restore(const InputFile& from) override {
    Result<std::vector<Token>> restored = Error{};
    for (RemoteService* w : writing_) {
      auto one = w->restore(from);
      if (!restored) restored = std::move(one);
    }
    return restored;
  }
  Result<int> erase(std::span<const Token> text) override {
    int most = 0;
    for (RemoteService* w : writing_) {
      auto erased = w->erase(text);
      if (!erased) return erased;
      most = std::max(most, *erased);
    }
    return most;
  }
  Status embed(std::span<const std::vector<Token>> texts, const EmbeddingSink& sink) override {
    auto worker = embedding_worker();
    return worker ? (*worker)->embed(texts, sink) : Status(worker.error());
  }
  std::vector<SchedulerNumbers> numbers() override {
    std::vector<SchedulerNumbers> all;
    for (const auto& w : workers_) {  // the last known numbers; requests new ones for the next call
      all.push_back(w->facts().numbers);
      w->ask_numbers();
    }
    return all;
  }

 private:
  // The worker that keeps most of a text, and its tokens.
  Result<std::pair<RemoteService*, int>> most_of(std::span<const Token> text) {
    std::pair<RemoteService*, int> most{writing_[0], 0};
    for (RemoteService* w : writing_) {
      const auto kept = w->kept(text);
      if (!kept) return kept.error();
      if (*kept > most.second) most = {w, *kept};
    }
    return most;
  }

  // Waits for the needs of all workers before any takes memory. One round per model that a worker loads.
  Status take_memory() {
    for (;;) {
      std::vector<wire::Planned> needs;
      for (const auto& w : workers_) {
        auto planned = w->wait_planned();
        if (!planned) return planned.error();
        if (*planned) needs.push_back(std::move(**planned));
      }
      if (needs.empty()) return Done{};
      if (auto ok = fit_together(needs); !ok) return ok;
      for (const auto& w : workers_) w->admit();
    }
  }

  // `divides`: MemoryReservations::worker()
  WorkerSettings settings(size_t i, bool divides) {
    WorkerSettings s;
    s.command = options_.command;
    s.load = options_.loads[i];
    s.memory = options_.memory->worker(id_, divides);
    s.vocabulary = int(tokenizer_->size());
    s.pages = options_.pages;
    s.ready = [this, i](const wire::Hello& hello) {
      const std::lock_guard lock(kernels_mutex_);
      if (hello.generates || !pool_) kernels_[i] = hello.kernels;
    };
    if (options_.replaced) s.replaced = [this, i](const std::string& why) { options_.replaced(i, why); };
    return s;
  }

  // A model that generates text gives embeddings by a worker of its own, started when the first one is
  // wanted.
  Result<RemoteService*> embedding_worker() {
    const std::lock_guard lock(embedding_);
    if (!pool_) return workers_[0].get();
    if (!embedder_) {
      const auto turn = options_.memory->turn_to_load();
      WorkerSettings s = settings(0, false);
      s.load.settings.model.embed = true;
      s.load.stores_pages = false, s.pages = nullptr;
      auto started = RemoteService::start(std::move(s));
      if (!started) return started.error();
      if (auto ok = (*started)->wait_ready(); !ok) return ok.error();
      embedder_ = std::move(*started);
    }
    return embedder_.get();
  }

  const std::string id_;
  const ModelFile source_;
  const RemoteOptions options_;
  std::mutex embedding_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_;
  std::shared_ptr<const ProjectorFile> projector_;  // nullptr: it reads texts only
  int context_ = 0;
  uint64_t bytes_ = 0;
  mutable std::mutex kernels_mutex_;
  std::vector<std::vector<ReceiptLine>> kernels_;  // of each worker
  // The pool is called by the threads of the workers: they end first.
  std::unique_ptr<ServicePool> pool_;
  std::vector<std::unique_ptr<RemoteService>> workers_;
  std::vector<RemoteService*> writing_;  // of these, those that write texts
  std::unique_ptr<RemoteService> embedder_;
};

}  // namespace

Result<ServedModelPtr> load_remote_model(std::string id, const ModelFile& source, RemoteOptions options) {
  auto model = std::make_shared<RemoteModel>(std::move(id), source, std::move(options));
  if (auto ok = model->start(); !ok) return ok.error();
  return ServedModelPtr(std::move(model));
}

}  // namespace gimbal
