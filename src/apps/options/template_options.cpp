#include "apps/options/template_options.h"

#include "base/format.h"
#include "base/json.h"

namespace gimbal {

void TemplateOptions::declare(Arguments& a) {
  a.text("--chat-template-kwargs", "JSON",
         "variables for the model's chat template, as an object: {\"enable_thinking\": false}", variables_);
}

Result<TemplateSettings> TemplateOptions::settings(std::optional<bool> thinks) const {
  TemplateSettings out;
  if (variables_)
    if (auto ok = set_variables(parse_json(*variables_), out); !ok)
      return Error{Code::Usage, format("--chat-template-kwargs: {}", ok.error().message), ok.error().remedy};
  if (thinks) out.thinks = thinks;
  return out;
}

}  // namespace gimbal
