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

// A LoRA adapter in GGUF; `scale`: how strongly it acts.
struct LoraAdapter {
  std::string path;
  float scale = 1;
};

struct ModelOptions {
  int context = 0;                 // positions of each sequence; 0: the model's own, at most 4096
  int batch = 256;                 // tokens of a prompt computed at once
  int sequences = 1;               // held at once
  std::string cache_type = "f16";  // of the KV cache: f32, f16, bf16, q8_0, q4_0
  // How the weights of a BitNet file in TL1, TL2 or I2_S lie, which the file does not tell: the path of a
  // kernel_config.ini, or "default", "preset", "i2_s-64", "i2_s-4x1". Empty: as in published models, and
  // others are refused.
  std::string kernel_config;
  std::vector<LoraAdapter> lora;  // each adds its product to the model's
  // Guesses the next tokens and computes them at once, which changes the speed and never the text: "ngram"
  // (from the text itself), "mtp" (by the file's own layers that guess further tokens), "auto" (these where
  // the file has them, else the text), or a smaller model with the same vocabulary, loaded beside this one.
  // It turns itself off where it does not pay. Empty or "off": nothing is guessed.
  std::string draft;
  bool embed = false;  // for Model::embed() and nothing else; then `batch` should hold the longest text
};

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
