// The fields of llama.cpp's native completions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "server/api/llama.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr size_t kMostStopWords = 64, kMostFields = 64, kMostBiases = 1024;
constexpr int kMostProbabilities = 100, kMostCompletions = 8;

// llama.cpp's sampler that gimbal lacks; 0 turns it off.
void refuse_min_keep(Fields& f) {
  if (const auto value = f.number("min_keep", -1e9, 1e9); value && *value != 0)
    f.wrong("min_keep", "'min_keep' is not supported: leave it out");
}

// The samplers in the order of gimbal's chain, with the settings that they obey.
struct Link {
  const char* name;
  std::initializer_list<const char*> fields;
};
constexpr Link kChain[] = {
    {"penalties", {"repeat_penalty", "frequency_penalty", "presence_penalty"}},
    {"dry", {"dry_multiplier"}},
    {"top_n_sigma", {"top_n_sigma"}},
    {"top_k", {"top_k"}},
    {"typ_p", {"typical_p"}},
    {"top_p", {"top_p"}},
    {"min_p", {"min_p"}},
    {"xtc", {"xtc_probability"}},
    {"temperature", {"temperature", "dynatemp_range"}},
    {"adaptive_p", {"adaptive_target"}},
};

void turn_off(std::string_view field, SamplerSettings& s) {
  for (const SamplingSetting& row : kSamplingSettings) {
    if (row.field != field) continue;
    const double off = field == "temperature" ? 1 : row.off.value_or(0);
    if (const auto* number = std::get_if<float Sampling::*>(&row.member)) s.** number = float(off);
    if (const auto* whole = std::get_if<int Sampling::*>(&row.member)) s.** whole = int(off);
  }
}

// The list says which samplers apply. Their order is fixed here, so another one is refused.
void read_samplers(Fields& f, Call& call, LlamaRequest& to) {
  for (const Link& link : kChain) to.samplers.emplace_back(link.name);
  if (!f.any("samplers")) return;
  std::vector<std::string> names = f.texts("samplers", 32);
  for (std::string& name : names)
    if (name == "typical_p") name = "typ_p";
  if (std::erase(names, "infill"))
    call.more_headers.push_back(
        {"x-gimbal-note", "there is no sampler 'infill'; the others choose the token"});
  std::vector<std::string> ordered;
  for (const Link& link : kChain)
    if (std::count(names.begin(), names.end(), link.name)) ordered.emplace_back(link.name);
    else
      for (const char* field : link.fields) turn_off(field, to.settings.request.sampler);
  if (names != ordered)
    f.wrong("samplers", format("'samplers': the names are {}, each at most once and in this order",
                               fmt::join(to.samplers, ", ")));
  to.samplers = std::move(ordered);
}

void read_bias(Fields& f, const Tokenizer& tokenizer, SamplerSettings& to) {
  const Json* j = f.any("logit_bias");
  if (!j) return;
  const auto wrong = [&](const char* what) { f.wrong("logit_bias", format("'logit_bias': {}", what)); };
  std::vector<std::pair<Json, Json>> pairs;
  if (j->is_object()) {
    for (const auto& [key, value] : j->items()) pairs.emplace_back(key, value);
  } else if (j->is_array()) {
    for (const Json& one : *j) {
      if (!one.is_array() || one.size() != 2) return wrong("an entry is [token id or text, bias or false]");
      pairs.emplace_back(one[0], one[1]);
    }
  } else {
    return wrong("a list of [token id or text, bias or false], or an object, was expected");
  }
  if (pairs.size() > kMostBiases) return wrong("there are more than 1024 entries");
  for (const auto& [key, value] : pairs) {
    const bool bans = value.is_boolean() && !value.get<bool>();
    if (!bans && !value.is_number()) return wrong("a bias is a number or false");
    const double number = bans ? -std::numeric_limits<double>::infinity() : value.get<double>();
    if (!bans && !(std::abs(number) <= 1e6)) return wrong("a bias is a number from -1000000 to 1000000");
    const float bias = float(number);
    std::vector<Token> tokens;
    const std::string* text = key.is_string() ? &key.get_ref<const std::string&>() : nullptr;
    const bool digits = text && !text->empty() && text->size() < 10 &&
                        text->find_first_not_of("0123456789") == text->npos && j->is_object();
    if (digits) tokens = {Token(std::stol(*text))};
    else if (text) tokens = tokenizer.encode(*text, {.add_bos = false, .parse_special = true});
    else if (key.is_number_integer() && key >= 0 && key < tokenizer.size()) tokens = {key.get<Token>()};
    else return wrong("a token is an id of the vocabulary or a text");
    if (tokens.size() > kMostBiases) return wrong("a text has more than 1024 tokens");
    for (Token t : tokens) {
      if (t >= tokenizer.size()) return wrong("a token is an id of the vocabulary or a text");
      to.logit_bias.emplace_back(t, bias);
    }
  }
}

void read_limits(Fields& f, LlamaRequest& to) {
  for (const char* name : {"max_tokens", "n_predict"})
    if (auto v = f.whole(name, INT32_MIN, INT32_MAX)) to.max_tokens = int(std::max<int64_t>(*v, -1));
  to.settings.request.max_tokens = to.max_tokens == 0 ? 1 : to.max_tokens;
  to.limits.nothing = to.max_tokens == 0;
  to.limits.indent = int(f.whole("n_indent", 0, INT32_MAX).value_or(0));
  to.limits.seconds = f.number("t_max_predict_ms", -1, 1e9).value_or(0) / 1000;
}

}  // namespace

LlamaRequest default_llama_request() {
  LlamaRequest r;
  for (const Link& link : kChain) r.samplers.emplace_back(link.name);
  return r;
}

void read_llama_request(Fields& f, Call& call, const ServedModel& model, LlamaRequest& to) {
  GenerationRequest& r = to.settings.request;
  SamplerSettings& s = r.sampler;
  apply_preset(model, to.settings);
  read_sampling(f, &SamplingSetting::openai, s);
  if (auto v = f.whole("repeat_last_n", -1, INT32_MAX)) s.penalty_window = int(*v);
  refuse_min_keep(f);
  read_samplers(f, call, to);
  set_seed(f, "seed", to.settings);
  // -1, also as a number of 32 bits, requests a random seed. It is short, so that a client can read it and
  // send it again.
  if (!to.settings.seeded || s.seed == uint64_t(-1) || s.seed == UINT32_MAX)
    s.seed = random_seed() & 0x7fffffff;
  to.settings.seeded = true;
  read_bias(f, model.tokenizer(), s);
  if (f.any("stop")) r.stops = f.texts("stop", kMostStopWords);
  std::erase(r.stops, "");
  for (const char* name : {"n", "n_cmpl"})
    if (auto v = f.whole(name, 1, kMostCompletions)) to.settings.n = int(*v);
  r.ignore_stop_tokens = f.flag("ignore_eos").value_or(false);
  r.grammar = f.text("grammar").value_or("");
  if (const Json* schema = f.any("json_schema")) set_schema(f, "json_schema", *schema, to.settings);
  read_limits(f, to);
  to.probabilities = int(f.whole("n_probs", 0, kMostProbabilities).value_or(0));
  if (to.probabilities) r.logprobs = std::min(to.probabilities, model.tokenizer().size());
  read_certificate(f);
  to.stream = f.flag("stream").value_or(false);
  to.returns_tokens = f.flag("return_tokens").value_or(false);
  to.times_tokens = f.flag("timings_per_token").value_or(false);
  to.fields = f.texts("response_fields", kMostFields);
  // The prompt is kept and found in any case, and no answer depends on it; nothing of a context is ever
  // dropped.
  f.flag("cache_prompt");
  for (const char* name : {"id_slot", "n_keep", "n_discard", "n_cache_reuse", "t_max_prompt_ms"})
    f.number(name, -1e15, 1e15);
  f.refuse("post_sampling_probs", "the probabilities are those of the model, before sampling", false);
  f.refuse("return_progress", "the first event comes with the first token", false);
  f.refuse("sse_ping_interval", "events come with tokens only", -1);
  read_adapters(f, model, r.adapters);
  if (r.adapters.empty()) r.adapters = call.adapters_for(model);
}

Json generation_settings(const LlamaRequest& r, const ServedModel& model) {
  const GenerationRequest& g = r.settings.request;
  Json j = {{"n_predict", r.max_tokens}, {"seed", g.sampler.seed}};
  for (const SamplingSetting& s : kSamplingSettings) {
    const char* name = s.openai.name ? s.openai.name : s.field;
    if (s.field == std::string_view("penalty_window")) name = "repeat_last_n";
    if (const auto* number = std::get_if<float Sampling::*>(&s.member)) j[name] = g.sampler.**number;
    if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) j[name] = g.sampler.**whole;
  }
  Json bias = Json::array();
  for (const auto& [token, b] : g.sampler.logit_bias)
    bias.push_back({token, std::isfinite(b) ? Json(b) : Json(false)});
  j.update({{"logit_bias", std::move(bias)},
            {"stop", g.stops},
            {"max_tokens", r.max_tokens},
            {"n_keep", 0},
            {"n_discard", 0},
            {"n_indent", r.limits.indent},
            {"t_max_predict_ms", r.limits.seconds * 1000},
            {"ignore_eos", g.ignore_stop_tokens},
            {"stream", r.stream},
            {"n_probs", r.probabilities},
            {"min_keep", 0},
            {"grammar", g.grammar},
            {"samplers", r.samplers},
            {"lora", adapters_json(model, g.adapters)},
            {"timings_per_token", r.times_tokens},
            {"n_ctx", model.context()},
            {"model", model.id()}});
  return j;
}

}  // namespace gimbal::api
