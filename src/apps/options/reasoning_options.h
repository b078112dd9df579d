// The options of a model's reasoning, and of its chat template: in `run` for one chat, in `serve` for
// requests that do not say.
#pragma once
#include <optional>
#include <string>

#include "apps/toolkit/arguments.h"
#include "chat/chat_prompt.h"

namespace gimbal {

class ReasoningOptions {
 public:
  void declare_for_chat(Arguments&);      // --think show, on, hide or off
  void declare_for_requests(Arguments&);  // --think on, off or auto; --reasoning-format
  // After parsing. --think wins over the variable of the template. Errors: Usage for a text that is no JSON,
  // and those of set_variables().
  Result<TemplateSettings> of_template() const;

  void refuse() { think_ = "off"; }  // no reasoning, whatever was asked
  int budget() const { return budget_; }
  bool shown() const { return think_ != "hide"; }
  bool in_text() const { return format_ == "none"; }  // the reasoning stays in an answer's text

 private:
  void declare_both(Arguments&, const char* budget);

  int budget_ = -1;
  std::string think_, format_;
  std::optional<std::string> variables_;
};

}  // namespace gimbal
