#include "apps/options/reasoning_options.h"

#include <climits>

#include "base/format.h"
#include "base/json.h"

namespace gimbal {

void ReasoningOptions::declare_for_chat(Arguments& a) {
  a.one_of("--think",
           "thinking before the answer: show it dimmed (or on), hide it, or turn it off; by default the chat "
           "template decides",
           think_, {"show", "hide", "on", "off"});
  declare_both(a, "the most tokens that a model thinks; then it must answer; -1: no limit (default)");
}

void ReasoningOptions::declare_for_requests(Arguments& a) {
  a.one_of(
      "--think",
      "thinking before the answer, where a request does not say (default auto: the chat template decides)",
      think_, {"on", "off", "auto"});
  a.one_of("--reasoning-format",
           "the reasoning in answers of /v1/chat/completions, where a request does not say: apart from the "
           "text (default auto), or none: in the text, between <think> and </think>",
           format_, {"auto", "deepseek", "none"});
  declare_both(a,
               "the most tokens that a model thinks, where a request does not say; -1: no limit (default)");
}

void ReasoningOptions::declare_both(Arguments& a, const char* budget) {
  a.text("--chat-template-kwargs", "JSON",
         "variables for the model's chat template, as an object: {\"enable_thinking\": false}", variables_);
  a.whole("--reasoning-budget", "N", budget, budget_, -1, INT_MAX);
}

Result<TemplateSettings> ReasoningOptions::of_template() const {
  TemplateSettings out;
  if (variables_)
    if (auto ok = set_variables(parse_json(*variables_), out); !ok)
      return Error{Code::Usage, format("--chat-template-kwargs: {}", ok.error().message), ok.error().remedy};
  if (!think_.empty() && think_ != "auto") out.thinks = think_ != "off";
  return out;
}

}  // namespace gimbal
