// The chat of `gimbal run`: questions and answers in the form that the model was trained on.
#pragma once
#include "chat/chat_template.h"
#include "engine/engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct ChatSettings {
  GenerateSettings generate;  // the seed is that of the first answer; each further one takes the next number
  std::string system;         // empty: none
  std::string think =
      "show";  // "show", "hide" (what the model thinks before it answers), "off" (asks it not to)
  bool drops_oldest = true;    // where the context is full; else that is an error
  bool parse_special = false;  // control tokens written out in messages count as such
  bool stats = false, quiet = false;
  std::optional<std::string> prompt_cache{};  // a file (apps/kept_prompt.h)
};

// A conversation until the user leaves, or one answer where there is a `question`. Answers the exit code.
Result<int> chat(Engine&, const LoadedModelPtr&, const Tokenizer&, const ChatTemplate&, const ChatSettings&,
                 const std::optional<std::string>& question);

}  // namespace gimbal
