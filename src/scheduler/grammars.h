// The grammars of requests, compiled by a thread of their own: one that takes seconds delays neither the
// engine nor whoever asks. The last ones are kept.
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
  // Called once, with the constraint at the beginning of a text; nothing: it was stopped before. Errors:
  // those of Grammar::gbnf() and Constraint.
  using Then = std::function<void(std::optional<Result<Constraint>>)>;

  // `tokenizer` outlives it; `vocabulary`: tokens of the model.
  Grammars(const Tokenizer& tokenizer, int vocabulary) : tokenizer_(tokenizer), vocabulary_(vocabulary) {}
  ~Grammars() { stop(); }

  // At once for a grammar that is kept, else by and by, from the thread. Errors: Failed, where the system
  // gives no thread: `then` is not called.
  Status compile(std::string gbnf, Then then);
  // What waits is told that it was stopped.
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

  std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  std::vector<std::pair<std::string, Constraint>> kept_;  // the one that was asked for last is the last
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gimbal
