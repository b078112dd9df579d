#include "scheduler/scheduler.h"

#include <system_error>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal {

Result<std::unique_ptr<Scheduler>> Scheduler::create(ModelPtr model, std::unique_ptr<Tokenizer> tokenizer,
                                                     OnDeviceLost on_device_lost,
                                                     const SchedulerOptions& options) {
  if (model->plan().width(Output::Logits) == 0)
    return Error{Code::Unsupported, "the model generates no text: it is for embeddings",
                 "load a model that generates text"};
  std::unique_ptr<Scheduler> s(
      new Scheduler(std::move(model), std::move(tokenizer), std::move(on_device_lost), options));
  try {
    s->thread_ = std::thread([raw = s.get()] { raw->run(); });
  } catch (const std::system_error&) {
    return Error{Code::Failed, "the system cannot create a thread for the engine", "end other programs"};
  }
  return s;
}

Scheduler::Scheduler(ModelPtr model, std::unique_ptr<Tokenizer> tokenizer, OnDeviceLost on_device_lost,
                     const SchedulerOptions& options)
    : tokenizer_(std::move(tokenizer)),
      vocabulary_(model->config().vocabulary),
      width_(model->plan().embedding_width()),
      capacity_(Serving::capacity(model->plan())),
      most_(uint64_t(Serving::places(model->plan())) + uint64_t(options.queue)),
      serving_(std::move(model), std::move(on_device_lost), options,
               [this] {
                 {
                   const std::lock_guard lock(mutex_);
                   mask_found_ = true;
                 }
                 wake_.notify_one();
               }),
      grammars_(*tokenizer_, vocabulary_),
      numbers_(serving_.numbers()) {}

Scheduler::~Scheduler() {
  grammars_.stop();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status Scheduler::submit(uint64_t id, GenerationRequest request, GenerationSink sink) {
  if (auto ok = Generation::check(request, vocabulary_, width_, capacity_); !ok) return ok.error();
  const double at = now();
  const bool constrained = !request.grammar.empty();
  {
    std::lock_guard lock(mutex_);
    if (broken_) return *broken_;
    if (submitted_ - numbers_.requests >= most_)
      return Error{Code::OutOfMemory, format("{} requests run or wait already: the queue is full", most_),
                   "try again in a moment", reason::kQueueFull};
    submitted_++;
    if (constrained) compiling_.push_back(id);
  }
  if (!constrained) {
    arrive(id, at, std::move(request), std::move(sink), {}, false);
    return Done{};
  }
  std::string grammar = request.grammar;
  auto then = [this, id, at, request = std::move(request), sink = std::move(sink)](auto made) mutable {
    compiled(id, at, std::move(request), std::move(sink), std::move(made));
  };
  if (auto ok = grammars_.compile(std::move(grammar), std::move(then)); !ok) {
    forget(id);
    return ok.error();
  }
  return Done{};
}

void Scheduler::arrive(uint64_t id, double at, GenerationRequest request, GenerationSink sink,
                       std::optional<Constraint> constraint, bool cancelled) {
  auto made = std::make_unique<Generation>(id, std::move(request), std::move(sink), *tokenizer_, capacity_,
                                           std::move(constraint));
  made->submitted = at;
  {
    std::lock_guard lock(mutex_);
    arrived_.push_back(std::move(made));
    if (cancelled) cancelled_.push_back(id);
  }
  wake_.notify_one();
}

// On the thread of the grammars, or of the caller.
void Scheduler::compiled(uint64_t id, double at, GenerationRequest request, GenerationSink sink,
                         std::optional<Result<Constraint>> made) {
  if (made && !*made) {
    forget(id);
    if (sink.failed) sink.failed(made->error());
    return;
  }
  bool wanted;
  {
    std::lock_guard lock(mutex_);
    wanted = std::erase(compiling_, id) != 0;
  }
  arrive(id, at, std::move(request), std::move(sink), made ? std::optional(**std::move(made)) : std::nullopt,
         !made || !wanted);
}

// A request that the engine will never see.
void Scheduler::forget(uint64_t id) {
  std::lock_guard lock(mutex_);
  std::erase(compiling_, id);
  submitted_--;
}

void Scheduler::cancel(uint64_t id) {
  {
    std::lock_guard lock(mutex_);
    if (!std::erase(compiling_, id)) cancelled_.push_back(id);  // else compiled() cancels it
  }
  wake_.notify_one();
}

SchedulerNumbers Scheduler::numbers() const {
  std::lock_guard lock(mutex_);
  SchedulerNumbers n = numbers_;
  n.waiting += int(arrived_.size() + compiling_.size());
  return n;
}

void Scheduler::run() {
  std::vector<std::unique_ptr<Generation>> arrived;
  std::vector<uint64_t> cancelled;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait(lock, [&] {
      return stopping_ || !arrived_.empty() || !cancelled_.empty() ||
             (!serving_.idle() && (!serving_.stalled() || mask_found_));
    });
    mask_found_ = false;
    arrived.swap(arrived_), cancelled.swap(cancelled_);
    lock.unlock();
    for (auto& g : arrived) serving_.add(std::move(g));
    for (uint64_t id : cancelled) serving_.cancel(id);
    arrived.clear(), cancelled.clear();
    const Status ok = serving_.step();
    lock.lock();
    if (!ok) broken_ = ok.error();
    numbers_ = serving_.numbers();
  }
  arrived.swap(arrived_);
  lock.unlock();
  for (auto& g : arrived) serving_.add(std::move(g));
  serving_.end_all(nullptr);
}

}  // namespace gimbal
