#include "scheduler/scheduler_thread.h"

#include <system_error>

#include "base/clock.h"
#include "base/format.h"

namespace gimbal {

Result<std::unique_ptr<SchedulerThread>> SchedulerThread::create(ModelPtr model,
                                                                 std::unique_ptr<Tokenizer> tokenizer,
                                                                 OnDeviceLost on_device_lost,
                                                                 const SchedulerOptions& options) {
  if (model->plan().width(Output::Logits) == 0)
    return Error{Code::Unsupported, "the model generates no text: it is for embeddings",
                 "load a model that generates text"};
  std::unique_ptr<SchedulerThread> s(
      new SchedulerThread(std::move(model), std::move(tokenizer), std::move(on_device_lost), options));
  try {
    s->thread_ = std::thread([raw = s.get()] { raw->run(); });
  } catch (const std::system_error&) {
    return Error{Code::Failed, "the system cannot create a thread for the engine", "end other programs"};
  }
  return s;
}

SchedulerThread::SchedulerThread(ModelPtr model, std::unique_ptr<Tokenizer> tokenizer,
                                 OnDeviceLost on_device_lost, const SchedulerOptions& options)
    : tokenizer_(std::move(tokenizer)),
      vocabulary_(model->config().vocabulary),
      width_(model->plan().embedding_width()),
      capacity_(Scheduler::capacity(model->plan())),
      adapters_(model->plan().adapters),
      most_(uint64_t(Scheduler::places(model->plan())) + uint64_t(options.queue)),
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

SchedulerThread::~SchedulerThread() {
  grammars_.stop();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status SchedulerThread::submit(uint64_t id, GenerationRequest request, GenerationSink sink) {
  if (auto ok = ScheduledRequest::check(request, vocabulary_, width_, capacity_, adapters_.size()); !ok)
    return ok.error();
  if (request.adapters == adapters_) request.adapters.clear();  // one form, so that texts share prefixes
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

void SchedulerThread::arrive(uint64_t id, double at, GenerationRequest request, GenerationSink sink,
                             std::optional<Constraint> constraint, bool cancelled) {
  auto made = std::make_unique<ScheduledRequest>(id, std::move(request), std::move(sink), *tokenizer_,
                                                 capacity_, std::move(constraint));
  made->submitted = at;
  {
    std::lock_guard lock(mutex_);
    arrived_.push_back(std::move(made));
    if (cancelled) cancelled_.push_back(id);
  }
  wake_.notify_one();
}

// On the thread of the grammars, or of the caller.
void SchedulerThread::compiled(uint64_t id, double at, GenerationRequest request, GenerationSink sink,
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
void SchedulerThread::forget(uint64_t id) {
  std::lock_guard lock(mutex_);
  std::erase(compiling_, id);
  submitted_--;
}

void SchedulerThread::cancel(uint64_t id) {
  {
    std::lock_guard lock(mutex_);
    if (!std::erase(compiling_, id)) cancelled_.push_back(id);  // else compiled() cancels it
  }
  wake_.notify_one();
}

void SchedulerThread::between_steps(const std::function<void(Scheduler*)>& work) {
  Call call{&work};
  std::unique_lock lock(mutex_);
  if (stopping_ || broken_) {
    lock.unlock();
    return work(nullptr);
  }
  calls_.push_back(&call);
  wake_.notify_one();
  called_.wait(lock, [&] { return call.done; });
}

SchedulerNumbers SchedulerThread::numbers() const {
  std::lock_guard lock(mutex_);
  SchedulerNumbers n = numbers_;
  n.waiting += int(arrived_.size() + compiling_.size());
  return n;
}

void SchedulerThread::run() {
  std::vector<std::unique_ptr<ScheduledRequest>> arrived;
  std::vector<uint64_t> cancelled;
  std::vector<Call*> calls;
  const auto make = [&](Scheduler* on) {
    for (Call* call : calls) (*call->work)(on);
    const std::lock_guard held(mutex_);
    for (Call* call : calls) call->done = true;
    calls.clear();
    called_.notify_all();
  };
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait(lock, [&] {
      return stopping_ || !arrived_.empty() || !cancelled_.empty() || !calls_.empty() ||
             (!serving_.idle() && (!serving_.stalled() || mask_found_));
    });
    mask_found_ = false;
    arrived.swap(arrived_), cancelled.swap(cancelled_), calls.swap(calls_);
    const bool broken = broken_.has_value();
    lock.unlock();
    if (!calls.empty()) make(broken ? nullptr : &serving_);
    for (auto& g : arrived) serving_.add(std::move(g));
    for (uint64_t id : cancelled) serving_.cancel(id);
    arrived.clear(), cancelled.clear();
    const Status ok = serving_.step();
    lock.lock();
    if (!ok) broken_ = ok.error();
    numbers_ = serving_.numbers();
  }
  arrived.swap(arrived_), calls.swap(calls_);
  lock.unlock();
  make(nullptr);
  for (auto& g : arrived) serving_.add(std::move(g));
  serving_.end_all(nullptr);
}

}  // namespace gimbal
