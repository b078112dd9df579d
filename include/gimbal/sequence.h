// A sequence of tokens and what the model keeps of it. It survives the loss of the device it runs on.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gimbal/error.h"
#include "gimbal/sampling.h"
#include "gimbal/tokenizer.h"

namespace gimbal::v1 {

// How a text is written: Sampling draws its tokens, the rest ends it.
struct TextOptions : Sampling {
  int max_tokens = -1;              // to generate; -1: until the model stops or the context is full
  std::vector<std::string> stops;   // texts that end the generation, and are not part of it
  bool ignore_stop_tokens = false;  // the model's own tokens that end a text do not end this one
};

enum class Finish { StopToken, StopString, Length, ContextFull, Cancelled };

struct Generated {
  std::string text;
  std::vector<Token> tokens;  // without the stop token
  Finish finish = Finish::Length;
  int prompt_tokens = 0;
  double prompt_seconds = 0, generate_seconds = 0;
  uint64_t drafted = 0, accepted = 0;  // tokens that were guessed, and those of them that the text has
};

// Gets text that is certain: whole characters, no part of a stop string. False cancels.
using TextSink = std::function<bool(std::string_view text)>;

// Owns one of its model's sequences, and keeps the model alive. Movable. One thread at a time for all
// sequences of a model.
class Sequence {
 public:
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;
  ~Sequence();

  // Computes `prompt` behind what the sequence holds, then generates. Errors: Usage for settings out of range
  // and a prompt that is empty or does not fit; NoBackend when the device was lost and no other one can be
  // had.
  Result<Generated> generate(std::string_view prompt, const TextOptions& = {}, const TextSink& = {});
  Result<Generated> generate(std::span<const Token> prompt, const TextOptions& = {}, const TextSink& = {});

  // Computes tokens behind those it holds, and gives the logits of the last one: vocabulary numbers, not
  // normalized. Errors: Usage for an id outside the vocabulary or no token; Failed (context-full); as
  // generate().
  Result<std::vector<float>> logits(std::span<const Token> tokens);

  int position() const;               // tokens held
  int room() const;                   // that still fit into the context
  std::vector<Token> tokens() const;  // those held
  void rewind(int position);          // forgets the tokens from `position` on
  std::string device() const;         // the id of the one it runs on now

  struct Impl;

 private:
  friend struct Access;
  explicit Sequence(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
