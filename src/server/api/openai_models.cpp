// GET /v1/models and /v1/models/ID; the model that a request means.
#include "base/format.h"
#include "server/api/call.h"

namespace gimbal::api {

Json model_json(const KnownModel& m) {
  Json j = {{"id", m.id}, {"object", "model"}, {"created", m.created}, {"owned_by", "gimbal"}};
  j["state"] = m.loaded ? "loaded" : "unloaded";
  if (!m.loaded) return j;
  j["context_length"] = m.context;
  j["device_bytes"] = m.device_bytes;
  if (m.stays) j["expires_in"] = *m.stays;
  return j;
}

Refused find_model(Call& call, const std::string& name, bool generates, ServedModelPtr& to, int64_t context) {
  auto found = call.services.models.get_for(name, context);
  if (!found) return found.error().code == Code::NotFound ? unknown_model(name) : of(found.error());
  to = std::move(*found);
  call.record->model = to->id();
  if (generates && !to->generation())
    return wrong_field("model", format("the model {} makes embeddings, not texts", quoted_briefly(name)));
  return {};
}

Refused find_model(Call& call, Fields& f, bool generates, ServedModelPtr& to) {
  f.need("model");
  const auto name = f.text("model");
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
    if (m.id == call.argument) {
      call.answer_json(model_json(m));
      return {};
    }
  return unknown_model(call.argument);
}

}  // namespace gimbal::api
