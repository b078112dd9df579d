// The option for variables of the chat template.
#pragma once
#include <optional>
#include <string>

#include "apps/toolkit/arguments.h"
#include "chat/chat_prompt.h"

namespace gimbal {

class TemplateOptions {
 public:
  void declare(Arguments&);
  // `thinks`: of an option for it, which wins over the variable. Errors: Usage for a text that is no JSON,
  // and those of set_variables().
  Result<TemplateSettings> settings(std::optional<bool> thinks) const;

 private:
  std::optional<std::string> variables_;
};

}  // namespace gimbal
