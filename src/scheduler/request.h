// What is asked of an engine that serves many at once, and what it tells: the one interface between whoever
// speaks to clients and whoever computes, in the same process or in another one.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
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
  std::vector<Token> written;  // of the answer: tokens that an engine which was lost has sent already
  std::string grammar;         // GBNF that every answer must match; empty: none
  std::string client;          // clients get equal shares
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

// A number for a request that no other request of this process has.
inline uint64_t new_request_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Thread-safe.
class GenerationService {
 public:
  virtual ~GenerationService() = default;
  // Queues a request; `id`: the caller's, new_request_id(). What is told does not depend on other requests:
  // the same tokens, texts and probabilities as alone. Errors: Usage for settings out of range, an empty
  // prompt, one that does not fit the context (context-full); OutOfMemory (queue-full) when too many wait.
  // What is wrong with a grammar comes to the sink.
  virtual Status submit(uint64_t id, GenerationRequest, GenerationSink) = 0;
  // Ends it within a step with Finish::Cancelled. An id that is not running is passed over.
  virtual void cancel(uint64_t id) = 0;
};

}  // namespace gimbal
