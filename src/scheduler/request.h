// What is asked of an engine that serves many at once, and what it tells: the one interface between whoever
// speaks to clients and whoever computes, in the same process or in another one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/generate.h"

namespace gimbal {

namespace reason {
inline constexpr const char* kQueueFull = "queue-full";  // Error::reason: too many requests wait
}

struct GenerationRequest {
  std::vector<Token> prompt;   // not empty
  std::vector<Token> written;  // of the answer, which an engine that was lost has told already
  SamplerSettings sampler;
  std::vector<std::string> stops;
  int max_tokens = -1;  // of the whole answer; -1: until the model stops or the context is full
  bool ignore_stop_tokens = false;
  int logprobs = -1;    // of each token, and of so many of the most likely ones; -1: none
  std::string grammar;  // GBNF that every answer must match; empty: none
  // An answer that a grammar constrains is brought to its end before max_tokens and the context are used up,
  // where these leave room for it.
  bool completes = false;
  std::string client;  // whose it is: clients get equal shares
};

struct TokenProbability {
  Token token;
  float logprob;  // natural logarithm, at temperature 1 of all logits
};

// One token of the answer. `text` is what became certain with it: whole characters, no part of a stop string;
// it may be empty.
struct TokenTold {
  Token token;
  int index;  // in the answer, from 0; none is left out or told twice
  std::string text;
  float logprob = 0;                  // with GenerationRequest::logprobs >= 0
  std::vector<TokenProbability> top;  // the most likely ones, best first
};

struct GenerationEnd {
  Finish finish = Finish::Length;
  std::string text;       // that was held back until now
  std::string stop;       // the stop string that was found
  int prompt_tokens = 0;  // all of them
  int shared_tokens = 0;  // of these, computed for an earlier request
  int tokens = 0;         // of the answer, without the stop token
  uint64_t drafted = 0, accepted = 0;
};

// Called from the engine's thread; must not block, and may call cancel().
struct GenerationSink {
  std::function<void(const TokenTold&)> token;
  std::function<void(const GenerationEnd&)> end;  // exactly one of end and failed, the last call
  std::function<void(const Error&)> failed;
  // Once, before the first step that computes any of it, even where the next call is that it failed; may be
  // empty.
  std::function<void()> begun = {};
};

// Thread-safe.
class GenerationService {
 public:
  virtual ~GenerationService() = default;
  // Queues it. What is told does not depend on other requests: the same tokens, texts and probabilities as
  // alone. Errors: Usage for settings out of range, an empty prompt, one that does not fit the context
  // (context-full); OutOfMemory (queue-full) when too many wait. What is wrong with a grammar comes to the
  // sink.
  virtual Result<uint64_t> submit(GenerationRequest, GenerationSink) = 0;
  // Ends it within a step with Finish::Cancelled. An id that is not running is passed over.
  virtual void cancel(uint64_t id) = 0;
};

}  // namespace gimbal
