// Ollama's paths about models: /api/tags, /api/show, /api/ps, /api/version; /api/embed and /api/embeddings.
#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "files/model_source.h"
#include "model/arch.h"
#include "server/api/ollama.h"
#include "server/api/prompt.h"
#include "server/model_library.h"

namespace gimbal::api {
namespace {

// "7.2B", "260K"
std::string in_words(uint64_t parameters) {
  if (parameters >= 1000000000) return format("{:.1f}B", double(parameters) / 1e9);
  if (parameters >= 1000000) return format("{:.1f}M", double(parameters) / 1e6);
  return format("{}K", parameters / 1000);
}

uint64_t parameters_of(const ModelSource& file) {
  uint64_t n = 0;
  for (const StoredTensor& t : file.tensors()) n += uint64_t(t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3]);
  return n;
}

Json value_json(const MetadataValue& v, bool verbose) {
  if (const auto* n = std::get_if<uint64_t>(&v)) return *n;
  if (const auto* n = std::get_if<int64_t>(&v)) return *n;
  if (const auto* n = std::get_if<double>(&v)) return *n;
  if (const auto* b = std::get_if<bool>(&v)) return *b;
  if (const auto* s = std::get_if<std::string_view>(&v)) return std::string(*s);
  const MetadataArray& a = std::get<MetadataArray>(v);
  if (!verbose) return nullptr;  // vocabularies are long
  if (a.type == MetadataType::String) return a.strings();
  if (a.type == MetadataType::F32 || a.type == MetadataType::F64) return a.floats();
  return a.integers();
}

// The modification time of a model's file; Go's zero time if the list lacks the name.
std::string modified_at(Call& call, const std::string& name) {
  for (const KnownModel& m : call.services.models.list())
    if (m.id == name || m.id == name + ":latest" || std::count(m.aliases.begin(), m.aliases.end(), name))
      return iso_time(m.created);
  return "0001-01-01T00:00:00Z";
}

Json model_json(Call& call, const KnownModel& m) {
  Json j = {{"name", m.id}, {"model", m.id}, {"modified_at", iso_time(m.created)}, {"size", m.bytes}};
  j["digest"] = call.services.models.digest(m.id);
  if (auto file = call.services.models.file(m.id)) j["details"] = ollama_details(**file);
  return j;
}

}  // namespace

Json ollama_details(const ModelSource& file) {
  const std::string family(file.metadata().string("general.architecture").value_or(""));
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", family},
          {"families", {family}},
          {"parameter_size", in_words(parameters_of(file))},
          {"quantization_level", quantization_of(file)}};
}

Refused ollama_tags(Call& call) {
  Json list = Json::array();
  for (const KnownModel& m : call.services.models.list()) list.push_back(model_json(call, m));
  call.answer_json({{"models", std::move(list)}});
  return {};
}

Refused ollama_ps(Call& call) {
  Json list = Json::array();
  for (const KnownModel& m : call.services.models.list()) {
    if (!m.loaded) continue;
    Json j = model_json(call, m);
    j.erase("modified_at");
    j["size"] = m.device_bytes;
    j["size_vram"] = m.gpu_bytes;
    j["context_length"] = m.context;
    j["expires_at"] = m.stays ? iso_time(unix_time() + int64_t(*m.stays)) : "9999-12-31T23:59:59Z";
    list.push_back(std::move(j));
  }
  call.answer_json({{"models", std::move(list)}});
  return {};
}

Refused ollama_show(Call& call) {
  Fields f(call.body);
  auto name = f.text("model");
  if (auto older = f.text("name"); older && !name) name = older;
  if (!name) f.need("model");
  const bool verbose = f.flag("verbose").value_or(false);
  f.harmless({"system", "template", "options"});  // of older versions, which could change a model here
  if (auto no = f.finish()) return no;
  auto found = call.services.models.file(*name);
  if (!found) return unknown_model(*name);
  const ModelSource& file = **found;
  Json info = Json::object();
  for (const auto& [key, entry] : file.metadata()) info[std::string(key)] = value_json(entry.value, verbose);
  info["general.parameter_count"] = parameters_of(file);
  const auto described = call.services.models.describe(*name);
  const ModelPreset preset = described && described->preset ? *described->preset : ModelPreset{};
  std::string parameters;
  for (const auto& [key, value] : preset.options.items())
    for (const Json& one : value.is_array() ? value : Json::array({value}))
      parameters += format("{:<30} {}\n", key, dump(one));
  std::string chat_template = preset.chat_template;
  if (chat_template.empty()) chat_template = file.metadata().string("tokenizer.chat_template").value_or("");
  Json capabilities = {check_generates(file) ? "completion" : "embedding"};
  if (chat_template.find("tools") != chat_template.npos) capabilities.push_back("tools");
  for (const ServedModelPtr& loaded : call.services.models.loaded()) {
    if (loaded->id() == *name && loaded->sees()) capabilities.push_back("vision");
    if (loaded->id() == *name && loaded->hears()) capabilities.push_back("audio");
  }
  call.answer_json({{"modelfile", format("FROM {}\n", *name)},
                    {"parameters", parameters},
                    {"template", std::move(chat_template)},
                    {"system", preset.system},
                    {"details", ollama_details(file)},
                    {"modified_at", modified_at(call, *name)},
                    {"model_info", std::move(info)},
                    {"capabilities", std::move(capabilities)}});
  return {};
}

Refused ollama_version(Call& call) {
  call.answer_json({{"version", call.services.version}});
  return {};
}

Refused ollama_embed(Call& call) {
  const double begin = now();
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = ollama_model(call, f, false, model)) return no;
  if (auto no = no_embeddings(*model)) return no;
  std::vector<std::vector<Token>> texts;
  if (auto no = raw_prompts(f, "input", *model, 2048, texts)) return no;
  const auto keep_alive = read_keep_alive(f);
  f.refuse("truncate", "a text is never cut", false);
  f.refuse("dimensions", "an embedding is given whole");
  ignore_ollama_options(call, f);
  if (auto no = f.finish()) return no;
  call.services.models.stay(model->id(), keep_alive);
  size_t tokens = 0;
  for (const auto& t : texts) {
    if (int64_t(t.size()) > model->context()) return context_exceeded(t.size(), model->context());
    tokens += t.size();
  }
  Json list = Json::array();
  auto ok = model->embed(texts, [&](size_t, std::span<const float> e) -> Status {
    list.push_back(e);
    return Done{};
  });
  if (!ok) return of(ok.error());
  call.answer_json({{"model", model->id()},
                    {"embeddings", std::move(list)},
                    {"total_duration", int64_t((now() - begin) * 1e9)},
                    {"load_duration", int64_t(call.load_seconds * 1e9)},
                    {"prompt_eval_count", tokens}});
  return {};
}

// The older path: one text, one vector.
Refused ollama_embeddings(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  const std::string prompt = f.text("prompt").value_or("");
  if (auto no = ollama_model(call, f, false, model)) return no;
  if (auto no = no_embeddings(*model)) return no;
  const auto keep_alive = read_keep_alive(f);
  ignore_ollama_options(call, f);
  if (auto no = f.finish()) return no;
  call.services.models.stay(model->id(), keep_alive);
  Json embedding = Json::array();
  if (!prompt.empty()) {  // without a text, the model is only loaded
    const std::vector<Token> text = model->tokenizer().encode(prompt);
    if (int64_t(text.size()) > model->context()) return context_exceeded(text.size(), model->context());
    auto ok = model->embed({&text, 1}, [&](size_t, std::span<const float> e) -> Status {
      embedding = e;
      return Done{};
    });
    if (!ok) return of(ok.error());
  }
  call.answer_json({{"embedding", std::move(embedding)}});
  return {};
}

}  // namespace gimbal::api
