// The chat template of a model file; where it has none, the one that its vocabulary was made for.
#pragma once
#include <string>

#include "base/json_fwd.h"
#include "chat/tool_calls.h"
#include "files/metadata.h"
#include "template/template.h"
#include "tokenizer/tokenizer.h"

namespace gimbal {

struct ChatTemplate {
  enum class Origin : uint8_t {
    File,        // tokenizer.chat_template
    Vocabulary,  // suggested by the control tokens there are
    None,        // nothing hints at a chat model: the texts of the messages, a line each
  };
  Template rendering;
  Origin origin;
  std::string family;    // of Origin::Vocabulary: "chatml"
  std::string evidence;  // the control token that suggests it
  std::string bos, eos;  // the variables bos_token and eos_token
  ToolCallFormat calls;  // how its model writes calls of tools

  // Errors: those of Template::parse(), naming the file's key.
  static Result<ChatTemplate> of(const Metadata& metadata, const Tokenizer& tokenizer);
  // Renders, with bos_token and eos_token where `variables` lack them.
  Result<Rendered> render(Json variables, const RenderOptions& options) const;
};

// For people, when the template is not the file's own: which one it is, and why. Else empty.
std::string note_of(const ChatTemplate&);

}  // namespace gimbal
