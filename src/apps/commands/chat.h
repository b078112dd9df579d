// The chat of `gimbal run`: questions and answers in the model's chat format.
#pragma once
#include "apps/commands/chat_pictures.h"
#include "chat/chat_prompt.h"
#include "chat/chat_template.h"
#include "engine/engine.h"
#include "runtime/generate.h"

namespace gimbal {

struct ChatSettings {
  GenerateSettings generate;  // its seed is for the first answer; each later answer adds 1
  std::string system;         // empty: none
  TemplateSettings of_template;
  bool shows_reasoning = true;
  bool drops_oldest = true;    // when the context is full; false: an error
  bool parse_special = false;  // recognize control tokens written in messages
  bool stats = false, quiet = false;
  std::optional<std::string> prompt_cache{};  // a file (apps/kept_prompt.h)
  PrefixStore* prefix_store = nullptr;        // outlives the chat
  bool guard = true;                 // in a conversation on a terminal: ends an answer that repeats itself
  bool wrap = true;                  // on a terminal: breaks lines between words
  ChatPictures* pictures = nullptr;  // outlives the chat; nullptr: the model does not see
  std::string marks{};               // of pictures that go with the first question of a conversation
};

// Chats until the user leaves, or answers only `question`, if given. Returns the exit code.
Result<int> chat(Engine&, const LoadedModelPtr&, const Tokenizer&, const ChatTemplate&, const ChatSettings&,
                 const std::optional<std::string>& question);

}  // namespace gimbal
