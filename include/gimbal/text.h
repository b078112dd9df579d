// Texts that a model writes: how they are written, and the result.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gimbal/certificate.h"
#include "gimbal/sampling.h"
#include "gimbal/tokenizer.h"

namespace gimbal::v1 {

// How a text is written: Sampling draws its tokens, the rest constrains and ends it.
struct TextOptions : Sampling {
  int max_tokens = -1;              // to generate; -1: until the model stops or the context is full
  std::vector<std::string> stops;   // texts that end the generation, and are not part of it
  bool ignore_stop_tokens = false;  // the model's own tokens that end a text do not end this one
  std::string grammar;              // GBNF that the text must match; empty: any text
  std::string json_schema;          // JSON schema that the text must obey; not together with a grammar
  // With a grammar or schema: complete the text before max_tokens or the context run out, if they leave
  // room for it.
  bool complete = false;
  // The scale of each of the model's LoRA adapters for this text, in the order of ModelOptions::lora; 0: not
  // applied. Empty: those of the sequence's text so far; of a new text, those of ModelOptions.
  std::vector<float> adapters;
  int logprobs = -1;  // log-probability of each token, and of this many most likely ones; -1: none
  // With logprobs >= 0 also those of the prompt's tokens (Generated::prompt_logprobs). For a Batch.
  // ModelOptions::logit_rows makes it faster.
  bool prompt_logprobs = false;
  // Pictures of a prompt that is a text: bytes of PNG, JPEG, WebP or GIF files; sounds (WAV, FLAC, MP3) if
  // the model hears. Each stands where the prompt has "<__media__>"; without such marks they precede the
  // text. Needs ModelOptions::mmproj. Messages have images of their own (Message::images).
  std::vector<std::string> images;
  // Make a certificate of the answer (Generated::certificate). For a text that begins with its prompt: an
  // empty Sequence, chat() or a Batch. The first one of a model hashes its file.
  bool certificate = false;
  // Called between the steps of the prompt with the number of its computed tokens. Return false to cancel. A
  // Batch does not call it; its cancel() works at any time.
  std::function<bool(size_t done, size_t total)> on_prompt = {};
  // A Batch calls it from its thread when the text has ended: Batch::wait() then returns at once.
  std::function<void()> on_end = {};
};

enum class Finish { StopToken, StopString, Length, ContextFull, Cancelled };

struct TokenProbability {
  Token token;
  float logprob;  // natural logarithm, at temperature 1 of all logits
};

struct Generated {
  std::string text;
  std::vector<Token> tokens;  // without the stop token
  // With TextOptions::logprobs >= 0, an entry for each of `tokens`: its log-probability, and the most likely
  // tokens in its place, best first.
  std::vector<float> logprobs;
  std::vector<std::vector<TokenProbability>> top;
  // With TextOptions::prompt_logprobs, the same for each token of the prompt but its first.
  std::vector<float> prompt_logprobs;
  std::vector<std::vector<TokenProbability>> prompt_top;
  Finish finish = Finish::Length;
  int prompt_tokens = 0;                            // a picture has several
  int stored_tokens = 0;                            // of these, read from the prefix store
  double prompt_seconds = 0, generate_seconds = 0;  // wall clock; in a Batch with the wait for other texts
  uint64_t drafted = 0, accepted = 0;               // drafted tokens, and those accepted into the text
  std::optional<Certificate> certificate = {};      // with TextOptions::certificate
};

// Receives finalized text (complete UTF-8, never part of a stop string). Return false to cancel.
using TextSink = std::function<bool(std::string_view text)>;

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
