// The chat of `gimbal run`: questions and answers in the model's chat format.
#pragma once
#include "chat/chat_template.h"
#include "engine/engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct ChatSettings {
  GenerateSettings generate;  // its seed is for the first answer; each later answer adds 1
  std::string system;         // empty: none
  std::string think =
      "show";  // "show", "hide" (does not print the model's reasoning), "off" (requests no reasoning)
  bool drops_oldest = true;    // when the context is full; false: an error
  bool parse_special = false;  // recognize control tokens written in messages
  bool stats = false, quiet = false;
  std::optional<std::string> prompt_cache{};  // a file (apps/kept_prompt.h)
  bool guard = true;  // in a conversation on a terminal: ends an answer that repeats itself
  bool wrap = true;   // on a terminal: breaks lines between words
};

// Chats until the user leaves, or answers only `question`, if given. Returns the exit code.
Result<int> chat(Engine&, const LoadedModelPtr&, const Tokenizer&, const ChatTemplate&, const ChatSettings&,
                 const std::optional<std::string>& question);

}  // namespace gimbal
