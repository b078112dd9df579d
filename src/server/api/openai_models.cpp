// GET /v1/models and /v1/models/ID; the model that a request means.
#include <algorithm>

#include "base/format.h"
#include "server/api/call.h"

namespace gimbal::api {

// The context under the names that clients of vLLM, llama.cpp and OpenRouter look for. A model that is not
// loaded has none yet: it depends on the memory that is then free.
Json openai_model_json(Call& call, const KnownModel& m) {
  Json j = {{"id", m.id}, {"object", "model"}, {"created", m.created}, {"owned_by", "gimbal"}};
  if (!m.aliases.empty()) j["aliases"] = m.aliases;
  j["state"] = m.loaded ? "loaded" : "unloaded";
  if (m.loaded) j["device_bytes"] = m.device_bytes;
  if (m.loaded && m.stays) j["expires_in"] = *m.stays;
  Json meta = Json::object();
  for (const ServedModelPtr& loaded : call.services.models.loaded())
    if (loaded->id() == m.id) {
      j["max_model_len"] = j["context_length"] = meta["n_ctx"] = loaded->context();
      meta["n_vocab"] = loaded->tokenizer().size();
      j["input_modalities"] = Json::array({"text"});
      if (loaded->sees()) j["input_modalities"].push_back("image");
      if (loaded->hears()) j["input_modalities"].push_back("audio");
    }
  // Files of models that nothing has loaded yet are not opened for a list.
  const bool open = m.loaded || !call.services.models.library();
  if (const auto file = open ? call.services.models.file(m.id) : Error{}) {
    const Metadata& about = (*file)->metadata();
    const std::string architecture(about.string("general.architecture").value_or(""));
    if (auto n = about.unsigned_integer(architecture + ".context_length")) meta["n_ctx_train"] = *n;
    if (auto n = about.unsigned_integer(architecture + ".embedding_length")) meta["n_embd"] = *n;
    meta["size"] = m.bytes;
  }
  j["meta"] = std::move(meta);
  return j;
}

// The id of the only model; nothing: there are several.
static std::optional<std::string> only_model(Call& call) {
  const std::vector<KnownModel> known = call.services.models.list();
  return known.size() == 1 ? std::optional(known[0].id) : std::nullopt;
}

Refused find_model(Call& call, const std::string& name, bool generates, ServedModelPtr& to, int64_t context) {
  auto found = call.services.models.get_for(name, context);
  // Where names may mean any model of this machine, an unknown one is a mistake.
  const bool any_name = call.dialect != Dialect::Ollama && !call.services.models.library();
  if (!found && found.error().code == Code::NotFound && any_name)
    if (const auto only = only_model(call)) {
      found = call.services.models.get_for(*only, context);
      if (found) call.adapter = adapter_named(**found, name);
      if (call.adapter < 0)
        call.more_headers.push_back(
            {"x-gimbal-note", "this server has one model, which answers whatever the name in the request"});
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
  for (const KnownModel& m : call.services.models.list()) data.push_back(openai_model_json(call, m));
  // An adapter of the only model is a name of its own (find_model()).
  if (const auto only = only_model(call))
    for (const ServedModelPtr& model : call.services.models.loaded())
      for (const std::string& name :
           model->id() == *only ? adapter_names(*model) : std::vector<std::string>()) {
        Json j = data[0];
        j["id"] = name, j["parent"] = *only;
        j.erase("aliases");
        data.push_back(std::move(j));
      }
  call.answer_json({{"object", "list"}, {"data", std::move(data)}});
  return {};
}

Refused show_model(Call& call) {
  for (const KnownModel& m : call.services.models.list())
    if (m.id == call.argument || std::count(m.aliases.begin(), m.aliases.end(), call.argument)) {
      call.answer_json(openai_model_json(call, m));
      return {};
    }
  return unknown_model(call.argument);
}

}  // namespace gimbal::api
