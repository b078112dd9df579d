// A sequence of tokens with its key-value cache. It survives the loss of its device.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gimbal/chat.h"
#include "gimbal/error.h"

namespace gimbal::v1 {

// Owns one of its model's sequences, and keeps the model alive. Movable. One thread at a time for all
// sequences of a model.
class Sequence {
 public:
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;
  ~Sequence();

  // Another sequence with the same tokens. The two share computed state until one of them continues: a
  // long beginning is computed once for many texts. Errors: OutOfMemory if the model has no free sequence
  // (ModelOptions::sequences).
  Result<Sequence> fork() const;

  // Computes `prompt` after the tokens that the sequence holds, then generates. Errors: Usage for options out
  // of range, a grammar or schema that cannot be obeyed, a prompt that is empty or does not fit, and other
  // scales of adapters than the tokens that it holds were computed with;
  // NoBackend when a device was lost and no other one is available.
  Result<Generated> generate(std::string_view prompt, const TextOptions& = {}, const TextSink& = {});
  Result<Generated> generate(std::span<const Token> prompt, const TextOptions& = {}, const TextSink& = {});

  // The model's answer to these messages. The sequence keeps the tokens that its prompt has in common with
  // the tokens it holds, and forgets the others; with other scales of adapters, all of them. Errors: as
  // generate(); Usage for messages that the template refuses, or tools that cannot be called; Unsupported for
  // a template that cannot be read.
  Result<Reply> chat(std::span<const Message> messages, const ChatOptions& = {}, const ChatSink& = {});

  // Writes the computed tokens to a file, so that another process can continue without computing them. The
  // file is valid for the same model, device, build and settings. Errors: Failed with the system's reason;
  // the device's.
  Status save(const std::string& path);
  // Restores them into an empty sequence, and returns their number; 0 for a file that is missing, damaged or
  // made for another model or device. Errors: Usage when the sequence holds tokens; the device's.
  Result<int> restore(const std::string& path);

  // Sets the scales for logits() and for texts that give none (TextOptions::adapters). Errors: Usage for a
  // wrong number of them, and while it holds tokens that were computed with others.
  Status adapt(std::span<const float> scales);
  // Computes tokens after those it holds, and returns the logits of the last one: Model::vocabulary()
  // numbers, not normalized. Errors: Usage for an id outside the vocabulary or no token; Failed
  // (context-full); as generate().
  Result<std::vector<float>> logits(std::span<const Token> tokens);

  // The same with the logits of every token, one after the other.
  Result<std::vector<float>> all_logits(std::span<const Token> tokens);

  int position() const;               // number of tokens it holds
  int room() const;                   // number of tokens that still fit into the context
  std::vector<Token> tokens() const;  // the tokens it holds; -1: a row of a picture
  void rewind(int position);          // forgets the tokens from `position` on
  std::string device() const;         // id of its current device

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
