// POST /v1/models/load and /v1/models/unload: which models take memory now.
#include <algorithm>

#include "server/api/call.h"

namespace gimbal::api {
namespace {

Refused answer_state(Call& call, const std::string& id) {
  const std::vector<KnownModel> all = call.services.models.list();
  const auto m = std::find_if(all.begin(), all.end(), [&](const KnownModel& k) { return k.id == id; });
  if (m == all.end()) return unknown_model(id);
  call.answer_json(openai_model_json(call, *m));
  return {};
}

}  // namespace

Refused load_model(Call& call) {
  Fields f(call.body);
  f.need("model");
  const std::string name = f.text("model").value_or("");
  const auto context = f.whole("context_length", 1, INT64_MAX);
  if (auto no = f.finish()) return no;
  ServedModelPtr model;
  if (auto no = find_model(call, name, false, model, context.value_or(0))) return no;
  call.note_context(context, *model);
  return answer_state(call, model->id());
}

Refused unload_model(Call& call) {
  Fields f(call.body);
  f.need("model");
  const std::string name = f.text("model").value_or("");
  if (auto no = f.finish()) return no;
  auto id = call.services.models.name_of(name);
  if (!id) return unknown_model(name);
  call.record->model = *id;
  call.services.models.stay(*id, 0);
  return answer_state(call, *id);
}

}  // namespace gimbal::api
