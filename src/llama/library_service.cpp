#include "llama/library_service.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "grammar/grammar.h"

namespace gimbal::llama {
namespace {

// The part of a request that only gimbal's own engine computes; empty: none.
const char* only_ours(const GenerationRequest& r) {
  if (r.certify) return "a certificate";
  if (r.scores_prompt) return "log-probabilities of the prompt";
  if (!r.embeddings.empty() || !r.pictures.empty()) return "pictures";
  if (!r.adapters.empty()) return "LoRA adapters by request";
  return "";
}

}  // namespace

Result<std::unique_ptr<LibraryService>> LibraryService::create(Start start, const Tokenizer& tokenizer,
                                                               const LibraryTexts& texts) {
  std::unique_ptr<LibraryService> made(new LibraryService(std::move(start), tokenizer, texts));
  if (auto ok = made->open(); !ok) return ok.error();
  made->thread_ = std::thread([it = made.get()] { it->run(); });
  return made;
}

LibraryService::~LibraryService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = cancelled_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The process with its model, if there is none.
Status LibraryService::open() {
  if (process_) return Done{};
  auto started = start_();
  if (!started) return started.error();
  const ModelFacts& facts = started->model();
  if (facts.vocabulary != tokenizer_.size())
    return Error{Code::Unsupported,
                 format("the library {} has {} tokens for this model, and the file names {}",
                        started->library().path, facts.vocabulary, tokenizer_.size()),
                 "use another release of the library, or gimbal's own engine"};
  process_ = std::make_unique<LlamaProcess>(std::move(*started));
  writer_ = std::make_unique<LibraryWriter>(*process_, tokenizer_, texts_);
  const std::lock_guard lock(mutex_);
  library_ = process_->library(), model_ = process_->model();
  return Done{};
}

Status LibraryService::submit(uint64_t id, GenerationRequest request, GenerationSink sink) {
  if (const std::string what = only_ours(request); !what.empty())
    return Error{Code::Usage,
                 format("{} needs gimbal's own engine, and --backend llama.cpp runs the "
                        "model in a library",
                        what),
                 "leave it out of the request"};
  if (auto ok = check_text(request, Inputs(request.prompt), model().vocabulary, 0, texts_.context); !ok)
    return ok;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Error{Code::Failed, "the server is shutting down", ""};
    if (waiting_.size() >= kMostWaiting)
      return Error{Code::OutOfMemory, format("{} requests wait already", waiting_.size()), "try again later",
                   reason::kQueueFull};
    waiting_.push_back({id, std::move(request), std::move(sink), now()});
  }
  wake_.notify_all();
  return Done{};
}

void LibraryService::cancel(uint64_t id) {
  std::optional<Job> gone;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == id) cancelled_ = true;
    const auto at = std::find_if(waiting_.begin(), waiting_.end(), [&](const Job& j) { return j.id == id; });
    if (at == waiting_.end()) return;
    gone = std::move(*at);
    waiting_.erase(at);
    numbers_.requests++;
  }
  gone->sink.end({.finish = Finish::Cancelled, .prompt_tokens = int(gone->request.prompt.size())});
}

void LibraryService::restart() {
  const std::lock_guard lock(mutex_);
  restarting_ = true;
}

SchedulerNumbers LibraryService::numbers() const {
  const std::lock_guard lock(mutex_);
  SchedulerNumbers n = numbers_;
  n.running = running_ != 0, n.waiting = int(waiting_.size());
  return n;
}
LibraryFacts LibraryService::library() const {
  const std::lock_guard lock(mutex_);
  return library_;
}
ModelFacts LibraryService::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

bool LibraryService::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void LibraryService::run() {
  for (;;) {
    std::optional<Job> job;
    bool ends, again;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      ends = stopping_, again = std::exchange(restarting_, false);
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = job->id, cancelled_ = ends;
    }
    if (again) writer_ = nullptr, process_ = nullptr;
    if (ends) job->sink.failed({Code::Failed, "the server is shutting down", ""});
    else answer(*job);
    const std::lock_guard lock(mutex_);
    running_ = 0, numbers_.requests++;
  }
}

void LibraryService::answer(Job& job) {
  if (job.sink.begun) job.sink.begun();
  std::string rest;
  auto done = write(job, rest);
  if (!done) return job.sink.failed(done.error());
  job.sink.end({.finish = done->finish,
                .text = std::move(rest),
                .prompt_tokens = done->prompt_tokens,
                .tokens = int(job.request.written.size() + done->tokens.size())});
}

Result<Generated> LibraryService::write(Job& job, std::string& rest) {
  if (auto ok = open(); !ok) return ok.error();
  std::optional<Constraint> constraint;
  if (const std::string& gbnf = job.request.grammar; !gbnf.empty()) {
    auto grammar = Grammar::gbnf(gbnf);
    if (!grammar) return grammar.error();
    if (!tree_) tree_ = TokenTree::create(tokenizer_, tokenizer_.size());
    auto made = Constraint::create(*grammar, tree_);
    if (!made) return made.error();
    constraint = std::move(*made);
  }
  GenerateSettings settings;
  static_cast<TextSettings&>(settings) = job.request;
  settings.written = job.request.written, settings.constraint = constraint ? &*constraint : nullptr;
  settings.on_prompt = [&](size_t, size_t) { return !cancelled(); };
  double last = 0;
  auto done = writer_->write(
      job.request.prompt, settings,
      [&](const TokenEvent& t) {
        job.sink.token(t);
        const std::lock_guard lock(mutex_);
        const double at = now();
        if (last > 0) numbers_.between_tokens.add(at - last);
        else
          numbers_.first_token.add(at - job.submitted), numbers_.prompt_tokens += job.request.prompt.size();
        last = at, numbers_.tokens_generated++, numbers_.steps++, numbers_.rows++;
        return !cancelled_;
      },
      &rest);
  // A process that failed computes nothing more.
  if (!done && std::string_view(done.error().reason).starts_with("library-"))
    writer_ = nullptr, process_ = nullptr;
  return done;
}

}  // namespace gimbal::llama
