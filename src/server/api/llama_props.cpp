// GET /props of llama.cpp's server: how the model is served.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "server/api/llama.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

int digit_of(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

}  // namespace

std::optional<std::string> query_field(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), field.size() + 1));
    if (field.substr(0, field.find('=')) != name) continue;
    const std::string_view value = field.size() > name.size() ? field.substr(name.size() + 1) : "";
    std::string text;
    for (size_t i = 0; i < value.size(); i++) {
      const bool coded = value[i] == '%' && i + 2 < value.size() && std::isxdigit(uint8_t(value[i + 1])) &&
                         std::isxdigit(uint8_t(value[i + 2]));
      text += coded             ? char(digit_of(value[i + 1]) * 16 + digit_of(value[i + 2]))
              : value[i] == '+' ? ' '
                                : value[i];
      if (coded) i += 2;
    }
    return text;
  }
  return {};
}

Refused model_of_query(Call& call, ServedModelPtr& to) {
  if (!call.services.ready) return ApiError{503, "the model is being loaded", "", "", 1};
  auto name = query_field(call.request.query, "model");
  const std::vector<KnownModel> known = call.services.models.list();
  if (!name && known.size() > 1)
    return wrong_field("model",
                       "this server has several models: name one, as ?model=ID; /v1/models lists them");
  return find_model(call, name.value_or(known[0].id), false, to);
}

Refused show_props(Call& call) {
  ServedModelPtr model;
  if (auto no = model_of_query(call, model)) return no;
  const Metadata& metadata = model->file().metadata();
  const ChatTemplate& chat = model->chat();
  call.answer_json(
      {{"default_generation_settings",
        {{"n_ctx", model->context()}, {"params", generation_settings(default_llama_request(), *model)}}},
       {"total_slots", model->texts_at_once()},
       {"model_alias", model->id()},
       {"model_path", model->id()},  // no path leaves this machine
       {"modalities", {{"vision", model->sees()}, {"audio", model->hears()}}},
       {"chat_template", metadata.string("tokenizer.chat_template").value_or("")},
       {"bos_token", chat.bos},
       {"eos_token", chat.eos},
       {"build_info", "gimbal-" + call.services.version},
       {"is_sleeping", false}});
  return {};
}

}  // namespace gimbal::api
