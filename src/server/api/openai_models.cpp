// GET /v1/models and /v1/models/ID; the model that a request means.
#include <algorithm>

#include "base/format.h"
#include "server/api/call.h"

namespace gimbal::api {

Json model_json(const KnownModel& m) {
  Json j = {{"id", m.id}, {"object", "model"}, {"created", m.created}, {"owned_by", "gimbal"}};
  if (!m.aliases.empty()) j["aliases"] = m.aliases;
  j["state"] = m.loaded ? "loaded" : "unloaded";
  if (!m.loaded) return j;
  j["context_length"] = m.context;
  j["device_bytes"] = m.device_bytes;
  if (m.stays) j["expires_in"] = *m.stays;
  return j;
}

// The id of the only model; nothing: there are several, or a name may mean another model of this machine.
static std::optional<std::string> only_model(Call& call) {
  if (call.services.models.library()) return {};
  const std::vector<KnownModel> known = call.services.models.list();
  return known.size() == 1 ? std::optional(known[0].id) : std::nullopt;
}

Refused find_model(Call& call, const std::string& name, bool generates, ServedModelPtr& to, int64_t context) {
  auto found = call.services.models.get_for(name, context);
  if (!found && found.error().code == Code::NotFound && call.dialect != Dialect::Ollama)
    if (const auto only = only_model(call)) {
      call.more_headers.push_back(
          {"x-gimbal-note", "this server has one model, which answers whatever the name in the request"});
      found = call.services.models.get_for(*only, context);
    }
  if (!found) return found.error().code == Code::NotFound ? unknown_model(name) : of(found.error());
  to = std::move(*found);
  call.record->model = to->id();
  if (generates && !to->generation())
    return wrong_field("model", format("the model {} makes embeddings, not texts", quoted_briefly(name)));
  return {};
}

Refused find_model(Call& call, Fields& f, bool generates, ServedModelPtr& to) {
  auto name = f.text("model");
  if (!name) name = only_model(call);
  if (!name) f.need("model");
  if (!f.ok()) return f.error();
  return find_model(call, *name, generates, to);
}

Refused list_models(Call& call) {
  Json data = Json::array();
  for (const KnownModel& m : call.services.models.list()) data.push_back(model_json(m));
  call.answer_json({{"object", "list"}, {"data", std::move(data)}});
  return {};
}

Refused show_model(Call& call) {
  for (const KnownModel& m : call.services.models.list())
    if (m.id == call.argument || std::count(m.aliases.begin(), m.aliases.end(), call.argument)) {
      call.answer_json(model_json(m));
      return {};
    }
  return unknown_model(call.argument);
}

}  // namespace gimbal::api
