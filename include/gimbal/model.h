// A model with its weights on its devices.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gimbal/batch.h"
#include "gimbal/device.h"
#include "gimbal/sequence.h"
#include "gimbal/settings.h"
#include "gimbal/tokenizer.h"

namespace gimbal::v1 {

// How the embedding of a text is made of those of its tokens.
enum class Pooling {
  OfFile,  // as the model file says
  Mean,    // of all tokens
  First,   // the first token's ("cls")
  Last,    // the last token's
};

// A handle: copies share one model. Its sequences and batches keep it alive. One thread at a time, but for a
// Batch.
class Model {
 public:
  // Errors: OutOfMemory when all sequences of ModelOptions are in use; Usage while a Batch has them.
  Result<Sequence> new_sequence();

  // Runs ModelOptions::sequences texts at once. Errors: Usage while there is a Sequence or another Batch, and
  // for a model that generates no text.
  Result<Batch> new_batch(const BatchOptions& = {});

  // The prompt for an answer to these messages, by the chat template of the file; a file without one gets
  // the template that its vocabulary suggests. Thread-safe. Errors: as Sequence::chat().
  Result<ChatPrompt> chat_prompt(std::span<const Message> messages, const ChatOptions& = {}) const;

  // One vector per text, in order, all of the same length; similar texts have similar vectors. `normalised`:
  // of Euclidean length 1. The bits do not depend on the other texts. Needs ModelOptions::embed. Continues on
  // the next device when one is lost. Errors: Usage for a text that is empty or too long, and for OfFile when
  // the file names no pooling; the device's; NoBackend as generate().
  Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts, Pooling = Pooling::OfFile,
                                                bool normalised = true);

  // The relevance of each document for a query, in order. A reranker gives its own judgement, from 0 to 1;
  // another embedding model the cosine of the angle between both texts, from -1 to 1. Needs
  // ModelOptions::embed. Errors: as embed().
  Result<std::vector<double>> rerank(const std::string& query, std::span<const std::string> documents);

  Tokenizer tokenizer() const;
  std::string name() const;
  int context() const;     // positions of each sequence
  int vocabulary() const;  // number of logits for a token
  // Its LoRA adapters, with the scales of texts that give none (TextOptions::adapters).
  std::vector<LoraAdapter> adapters() const;

  // The devices it runs on now, and why; after the loss of a device, the replacements.
  std::vector<Placement> placement() const;
  std::vector<Fallback> fallbacks() const;
  // The kernels that ran since it was loaded there. Do not call it while a Sequence or Batch computes.
  std::vector<ReceiptLine> receipt() const;

  struct Impl;

 private:
  friend struct Access;
  explicit Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
