// gimbal render-template: the prompt that a chat template makes from messages.
#include <ctime>

#include "apps/commands/command.h"
#include "apps/commands/open_model.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"
#include "chat/chat_prompt.h"

namespace gimbal {
namespace {

// "2024-07-26T12:00:00", "2024-07-26 12:00" or "2024-07-26"; a fraction and a zone at the end are not looked
// at.
bool read_time(const std::string& text, std::tm& to) {
  std::tm t{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%d", &t);
  if (rest && (*rest == 'T' || *rest == ' ')) {
    rest = strptime(rest + 1, "%H:%M", &t);
    if (rest && *rest == ':') rest = strptime(rest, ":%S", &t);
    if (rest && *rest == '.') rest += 1 + std::string_view(rest + 1).find_first_not_of("0123456789");
    if (rest && *rest) rest = std::string_view("Z+-").find(*rest) == std::string_view::npos ? nullptr : "";
  }
  if (!rest || *rest) return false;
  t.tm_isdst = 0;
  std::tm day = t;
  timegm(&day);  // the day of the week, and of the year
  t.tm_wday = day.tm_wday;
  t.tm_yday = day.tm_yday;
  to = t;
  return true;
}

class RenderTemplate final : public Command {
 public:
  void declare(Arguments& a) override {
    a.text("--template", "FILE", "a file with the template (Jinja)", template_);
    a.text("-m,--model", "MODEL",
           "the template of a model file, a name listed by `gimbal list`, an address, or `default`", model_);
    a.text("-i,--input", "FILE", "the template's variables as JSON: {\"messages\": [...], ...}; - is stdin",
           input_);
    a.text("--now", "TIME", "the time for templates that write a date: 2024-07-26T12:00:00; default: now",
           now_);
    a.example("gimbal render-template --model model.gguf --input messages.json");
  }

  Result<int> run() override {
    if (template_.has_value() == model_.has_value())
      return Error{Code::Usage, "there must be one template", "give either --template FILE or --model MODEL"};
    if (!input_)
      return Error{Code::Usage, "there are no variables", "give --input FILE, or --input - for stdin"};
    RenderOptions options;
    if (!now_) options = local_time();
    else if (!read_time(*now_, options.now)) {
      return Error{Code::Usage, format("--now: {} is not a time", gimbal::quoted(*now_)),
                   "write it as 2024-07-26T12:00:00"};
    }
    auto text = read_text(*input_);
    if (!text) return text.error();
    const Json variables = parse_json(*text);
    if (variables.is_discarded())
      return Error{Code::Usage, format("{} is not JSON", gimbal::quoted(*input_)),
                   "it must hold {\"messages\": [...]}"};
    auto rendered = template_ ? of_file(variables, options) : of_model(variables, options);
    if (!rendered) return rendered.error();
    if (json) print_json({{"prompt", rendered->text}}, true);
    else print(rendered->text);
    return kDone;
  }

 private:
  Result<Rendered> of_file(const Json& variables, const RenderOptions& options) const {
    auto source = read_text(*template_);
    if (!source) return source.error();
    auto parsed = Template::parse(*source);
    if (parsed) return parsed->render(variables, options);
    Error e = parsed.error();
    e.code = Code::Failed;  // no model file is bad
    return e;
  }

  Result<Rendered> of_model(const Json& variables, const RenderOptions& options) const {
    auto source = open_header(*model_, {}, quiet);
    if (!source) return source.error();
    auto tokenizer = Tokenizer::create(source->file->metadata());
    if (!tokenizer) return tokenizer.error();
    auto chat = ChatTemplate::of(source->file->metadata(), **tokenizer);
    if (!chat) return chat.error();
    for (const std::string& n : {note_of(*chat), note_of_tools(*chat, variables)})
      if (!n.empty()) note(n);
    return chat->render(variables, options);
  }

  std::optional<std::string> template_, model_, input_, now_;
};

}  // namespace

std::unique_ptr<Command> make_render_template() { return std::make_unique<RenderTemplate>(); }

}  // namespace gimbal
