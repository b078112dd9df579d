// A model that a libllama computes in a child process: a second implementation beside the engine. The
// library's code runs in the child alone, so a crash or a hang of it becomes an error here.
#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "llama/protocol.h"
#include "workers/worker_process.h"

namespace gimbal::llama {

struct LibraryFacts {
  std::string path, release, system;
  int model_struct = 0, context_struct = 0;  // bytes
  bool layers = false;                       // layers' outputs can be read
};
struct ModelFacts {
  int vocabulary = 0, layers = 0, width = 0;
  bool half_values = false;  // it keeps the cache's values in f16, also for logits()
  std::string description;
  std::vector<std::string> sandbox, not_in_sandbox;
};
struct GreedyRun {
  std::vector<int32_t> tokens;
  double prompt_seconds = 0, token_seconds = 0;
};

class LlamaProcess {
 public:
  // Starts `command` as the child, and opens the library in it. `patience`: without a message for this long,
  // the child is stopped. Errors: those of LlamaLibrary::open; as below.
  static Result<LlamaProcess> start(const std::vector<std::string>& command, const std::string& library,
                                    std::chrono::milliseconds patience);
  LlamaProcess(LlamaProcess&&) noexcept;
  LlamaProcess& operator=(LlamaProcess&&) = delete;
  ~LlamaProcess();

  // Each of these fails with Code::Failed if the child ended ("library-crashed"), was silent
  // ("library-silent") or sent something else ("library-answer"); the error has the last lines that the
  // library wrote on stderr. The process is over then.
  Result<ModelFacts> load(const std::string& model);
  Result<std::vector<int32_t>> tokenize(const std::string& text, bool add_special, bool parse_special);
  using RowSink = std::function<void(int position, std::span<const float> logits)>;
  using TensorSink = std::function<void(const TensorFrame&)>;
  // Logits of all tokens, computed in one batch. `tensors`: may be empty.
  Result<double> logits(std::span<const int32_t> tokens, int threads, int context, const RowSink&,
                        const TensorSink& tensors);
  // The `count` likeliest tokens behind these.
  Result<GreedyRun> greedy(std::span<const int32_t> tokens, int count, int threads, int context);

  // Begins a text of at most `context` tokens, in place of the one before.
  Status begin(int threads, int context);
  // Computes its next tokens; returns the logits behind the last one.
  Result<std::vector<float>> advance(std::span<const int32_t> tokens);

  const LibraryFacts& library() const { return library_; }
  const ModelFacts& model() const { return model_; }

 private:
  LlamaProcess(WorkerProcess process, int errors, std::chrono::milliseconds patience)
      : process_(std::move(process)), errors_(errors), patience_(patience) {}
  // Sends the request, gives each frame of the answer to `part` and returns the last one.
  using Part = std::function<Status(const Frame&)>;
  Result<Json> ask(const Json& request, const std::string& doing, const Part& part = {},
                   const std::string* text = nullptr);
  Result<Json> exchange(std::string out, const std::string& doing, const Part& part);
  void read_errors();
  Error lost(const char* reason, std::string what, const std::string& doing);
  std::string last_words() const;

  WorkerProcess process_;
  int errors_;  // the child's stderr
  std::string words_;
  std::chrono::milliseconds patience_;
  FrameReader reader_;
  LibraryFacts library_;
  ModelFacts model_;
};

// The child process: runs a libllama for gimbal, by the protocol of protocol.h.

// Answers requests on the socket until its other end closes. After a model is loaded, the process gives up
// files, connections and other programs (workers/sandbox.h), as workers on the CPU do. Returns the exit code.
int serve_library(int socket);

}  // namespace gimbal::llama
