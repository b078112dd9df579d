// Requests to an engine that serves many at once, and its results: the one interface between the code that
// speaks to clients and the code that computes, in the same process or in another one.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/text_state.h"

namespace gimbal {

namespace reason {
inline constexpr const char* kQueueFull = "queue-full";  // Error::reason: too many requests wait
}

struct GenerationRequest : TextSettings {
  std::vector<Token> prompt;  // not empty; kNoToken: an embedding
  // The prompt's embeddings, by rising position, for a model that was loaded with RunOptions::embeddings.
  std::vector<EmbeddingSpan> embeddings;
  // Encoded files of pictures or sounds, one for each kNoToken of the prompt that no embedding covers. The
  // service of a model with a projector puts their rows in place of these; the scheduler gets none.
  std::vector<std::shared_ptr<const std::string>> pictures = {};
  // The scales of the model's LoRA adapters for this text, by adapter, 0: not applied; empty: those that the
  // model was loaded with.
  std::vector<float> adapters;
  std::vector<Token> written;  // tokens of the answer that a lost engine has sent already
  double memory = 0;           // of the sampler, after them (TokenTold)
  // With `logprobs`: the same for the prompt's tokens after its first one, and for the stop token that ends
  // the answer, to GenerationSink::scored. Not for a prompt with embeddings.
  bool scores_prompt = false;
  int scored = 0;          // of these, those that a lost engine has sent already
  std::string grammar;     // GBNF that the answer must match; empty: none
  std::string client;      // clients get equal shares
  std::string owner = {};  // texts of different owners share no page of the prefix store
};

struct GenerationEnd {
  Finish finish = Finish::Length;
  std::string text = {};         // the rest, held back until now
  std::string stop = {};         // the stop string that ended it
  int prompt_tokens = 0;         // tokens of the whole prompt
  int shared_tokens = 0;         // of these, computed for an earlier request
  int stored_tokens = 0;         // of these, read from the prefix store
  std::string stored_page = {};  // the name of their last page, which depends on all pages before
  int tokens = 0;                // of the answer, without the stop token
  uint64_t drafted = 0, accepted = 0;
  std::string row =
      {};  // with TextSettings::certify: the digest of the row that chose a stop token, if one did
};

// Called from the engine's thread; must not block, and may call cancel().
struct GenerationSink {
  std::function<void(const TokenEvent&)> token;
  std::function<void(const GenerationEnd&)> end;  // exactly one of end and failed, the last call
  std::function<void(const Error&)> failed;
  // Called once, before the first step with its rows, even if the request then fails at once. May be
  // empty.
  std::function<void()> begun = {};
  // With GenerationRequest::scores_prompt: each token of the prompt but its first, in order and before any
  // token of the answer, then the stop token, if one ends the answer. `index` counts from the prompt's
  // beginning. May be empty otherwise.
  std::function<void(const TokenEvent&)> scored = {};
};

// A number that is unique among the requests of this process.
inline uint64_t new_request_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Thread-safe.
class GenerationService {
 public:
  virtual ~GenerationService() = default;
  // Queues a request; `id`: the caller's, from new_request_id(). The answer does not depend on other
  // requests: tokens, texts and probabilities are the same as alone. Errors: Usage for settings out of
  // range, an empty prompt, one that does not fit the context (context-full); OutOfMemory (queue-full) when
  // too many wait. The sink gets the errors of a grammar.
  virtual Status submit(uint64_t id, GenerationRequest, GenerationSink) = 0;
  // Ends it within a step with Finish::Cancelled. Ignores unknown ids.
  virtual void cancel(uint64_t id) = 0;
};

}  // namespace gimbal
