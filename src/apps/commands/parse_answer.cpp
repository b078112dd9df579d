// gimbal parse-answer: the content, reasoning and tool calls that a model's answer holds.
#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "chat/chat_template.h"
#include "chat/reply_parser.h"

namespace gimbal {
namespace {

class ParseAnswer final : public Command {
 public:
  void declare(Arguments& a) override {
    a.text("--template", "FILE", "a file with the chat template (Jinja), which shows how calls are written",
           template_);
    a.text("-m,--model", "MODEL",
           "the template of a model file, a name listed by `gimbal list`, an address, or `default`", model_);
    a.text("--text", "TEXT", "the answer, with its control tokens", text_);
    a.text("-i,--input", "FILE", "a file with the answer; - is stdin", input_);
    a.flag("--inside-reasoning", "the prompt ended with <think>: the answer begins with the reasoning",
           inside_);
    a.example("gimbal parse-answer --template chat.jinja --input answer.txt");
  }

  Result<int> run() override {
    if (template_.has_value() == model_.has_value())
      return Error{Code::Usage, "there must be one template", "give either --template FILE or --model MODEL"};
    if (text_.has_value() == input_.has_value())
      return Error{Code::Usage, "there must be one answer", "give either --text TEXT or --input FILE"};
    auto source = template_ ? read_text(*template_) : Result<std::string>(std::string());
    if (!source) return source.error();
    auto calls = template_ ? Result<ToolCallFormat>(ToolCallFormat::of(*source)) : of_model();
    if (!calls) return calls.error();
    auto text = text_ ? Result<std::string>(*text_) : read_text(*input_);
    if (!text) return text.error();
    const ReplyParser::Part part = parse_reply(*text, *calls, inside_);
    Json list = Json::array();
    for (const ToolCall& c : part.calls) {
      const Json arguments = parse_json(c.arguments);
      list.push_back(
          {{"name", c.name}, {"arguments", arguments.is_discarded() ? Json(c.arguments) : arguments}});
    }
    print_json({{"content", part.text}, {"reasoning", part.reasoning}, {"tool_calls", list}}, true);
    return kDone;
  }

 private:
  Result<ToolCallFormat> of_model() const {
    auto source = open_header(*model_, {}, quiet);
    if (!source) return source.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto chat = ChatTemplate::of(source->file->metadata(), **tokenizer);
    if (!chat) return chat.error();
    return chat->calls;
  }

  std::optional<std::string> template_, model_, text_, input_;
  bool inside_ = false;
};

}  // namespace

std::unique_ptr<Command> make_parse_answer() { return std::make_unique<ParseAnswer>(); }

}  // namespace gimbal
