// A model with its weights on its devices.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gimbal/device.h"
#include "gimbal/sequence.h"
#include "gimbal/tokenizer.h"

namespace gimbal::v1 {

// What is made of the numbers that a model gives for each token of a text.
enum class Pooling {
  OfFile,  // as the model file says
  Mean,    // of all tokens
  First,   // the first token's ("cls")
  Last,    // the last token's
};

// A handle: copies share one model, which its sequences keep alive. One thread at a time.
class Model {
 public:
  // Errors: OutOfMemory when all sequences of ModelOptions are in use.
  Result<Sequence> new_sequence();

  // The embedding of each text, in order: as many numbers for each, near in direction for like meanings, and
  // of length 1 when `normalised`. The bits do not depend on the other texts. Needs ModelOptions::embed.
  // Continues on the next device when one is lost. Errors: Usage for a text that is empty or too long (names
  // the option), and for OfFile where the file says nothing; those of the devices; NoBackend as generate().
  Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts, Pooling = Pooling::OfFile,
                                                bool normalised = true);

  Tokenizer tokenizer() const;
  std::string name() const;
  int context() const;     // positions of each sequence
  int vocabulary() const;  // logits of a token

  // What it runs on now, and why: after the loss of a device, the ones that took its place.
  std::vector<Placement> placement() const;
  std::vector<Fallback> fallbacks() const;
  // What ran since it was loaded there. Not while a sequence computes.
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
