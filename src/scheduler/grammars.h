// Compiles the grammars of requests in a thread of its own: a slow grammar delays neither the engine nor
// the caller. Keeps the most recent ones.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "grammar/constraint.h"

namespace gimbal {

// Thread-safe.
class Grammars {
 public:
  // Called once, with the constraint at the beginning of a text; nullopt: stopped before it was compiled.
  // Errors: those of Grammar::gbnf() and Constraint.
  using Then = std::function<void(std::optional<Result<Constraint>>)>;

  // `tokenizer` outlives it; `vocabulary`: tokens of the model.
  Grammars(const Tokenizer& tokenizer, int vocabulary) : tokenizer_(tokenizer), vocabulary_(vocabulary) {}
  ~Grammars() { stop(); }

  // Calls `then` at once for a kept grammar, else later, from the thread. Errors: Failed if the system has
  // no thread; then `then` is not called.
  Status compile(std::string gbnf, Then then);
  // Ends waiting jobs: calls their `then` with nullopt.
  void stop();

 private:
  struct Job {
    std::string gbnf;
    Then then;
  };
  void run();
  std::optional<Constraint> kept(const std::string& gbnf);
  Result<Constraint> made(const std::string& gbnf);

  const Tokenizer& tokenizer_;
  const int vocabulary_;
  std::shared_ptr<const TokenTree> tree_;  // of the thread

  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  std::vector<std::pair<std::string, Constraint>> kept_;  // most recently used last
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gimbal
