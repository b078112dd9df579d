// The chat template of a model file, or else one suggested by its vocabulary.
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
    Vocabulary,  // derived from the vocabulary's control tokens
    None,        // not recognizably a chat model: message texts, one per line
  };
  Template rendering;
  Origin origin;
  std::string family;    // of Origin::Vocabulary: "chatml"
  std::string evidence;  // the control token that suggests it
  std::string bos, eos;  // the variables bos_token and eos_token
  ToolCallFormat calls;  // how its model writes calls of tools
  // false: render() puts tools, earlier calls and their results into the messages, as text.
  bool knows_tools = true;

  // Errors: those of Template::parse(), naming the file's key.
  static Result<ChatTemplate> of(const Metadata& metadata, const Tokenizer& tokenizer);
  // The same for a template that the file does not have. Errors: those of Template::parse().
  static Result<ChatTemplate> of_text(const std::string& source, const Tokenizer& tokenizer);
  // Renders, with bos_token and eos_token where `variables` lack them.
  Result<Rendered> render(Json variables, const RenderOptions& options) const;
};

// The text of a template that a user names: itself if it holds "{%" or "{{", the form of a family such as
// "chatml", else that of a file. Empty for an empty choice. Errors: Usage for a name that is neither, and
// for a template that cannot be read.
Result<std::string> chat_template_text(const std::string& choice);

// For people, if the template is not the file's own: its name and the reason. Else empty.
std::string note_of(const ChatTemplate&);
// The same where it knows no tools and `variables` have some. Else empty.
std::string note_of_tools(const ChatTemplate&, const Json& variables);

}  // namespace gimbal
