// Requests that a libllama answers, one after the other: the library computes one text at a time. A library
// that crashes or hangs fails the request that it worked on; the next request starts it again.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "grammar/constraint.h"
#include "llama/library_text.h"
#include "scheduler/numbers.h"
#include "scheduler/request.h"

namespace gimbal::llama {

class LibraryService final : public GenerationService {
 public:
  // Starts the library, and loads the model.
  using Start = std::function<Result<LlamaProcess>()>;
  static constexpr size_t kMostWaiting = 256;

  // Tokenizer: outlives it. Errors: those of `start`; Unsupported if the library's vocabulary has another
  // size than the tokenizer's.
  static Result<std::unique_ptr<LibraryService>> create(Start start, const Tokenizer&, const LibraryTexts&);
  ~LibraryService() override;  // cancels all

  // Refuses what only gimbal's own engine can do: certificates, scored prompts, embeddings, adapters.
  Status submit(uint64_t id, GenerationRequest, GenerationSink) override;
  void cancel(uint64_t id) override;

  SchedulerNumbers numbers() const;
  LibraryFacts library() const;
  ModelFacts model() const;
  // Ends the process; the next request starts another one.
  void restart();

 private:
  struct Job {
    uint64_t id;
    GenerationRequest request;
    GenerationSink sink;
    double submitted;
  };

  LibraryService(Start start, const Tokenizer& tokenizer, const LibraryTexts& texts)
      : start_(std::move(start)), tokenizer_(tokenizer), texts_(texts) {}
  Status open();
  void run();
  void answer(Job&);
  Result<Generated> write(Job&, std::string& rest);
  bool cancelled() const;

  const Start start_;
  const Tokenizer& tokenizer_;
  const LibraryTexts texts_;
  // Of the thread.
  std::unique_ptr<LlamaProcess> process_;
  std::unique_ptr<LibraryWriter> writer_;
  std::shared_ptr<const TokenTree> tree_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  uint64_t running_ = 0;  // its id; 0: none
  bool cancelled_ = false, stopping_ = false, restarting_ = false;
  SchedulerNumbers numbers_;
  LibraryFacts library_;
  ModelFacts model_;
  std::thread thread_;
};

}  // namespace gimbal::llama
