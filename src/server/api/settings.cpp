#include "server/api/settings.h"

#include <charconv>
#include <limits>

#include "base/format.h"
#include "grammar/grammar.h"
#include "server/api/adapters.h"
#include "server/api/text.h"
#include "server/named_model.h"

namespace gimbal::api {
namespace {

constexpr size_t kMaxStops = 16;
constexpr int kMaxChoices = 8;
constexpr size_t kMaxBiases = 10'000;
constexpr size_t kMaxTexts = 32;  // of a setting that is a list of texts
// 100 is the most that a client can say, and means that the token comes, whatever the model thinks of it.
constexpr float kForced = 1000;

void set_grammar(Fields& f, const char* name, const Grammar& grammar, Settings& to) {
  if (!to.request.grammar.empty())
    return f.wrong(
        name, format("'{}' and 'grammar' each say what the answer must be: give one of them", f.path(name)));
  to.request.grammar = grammar.to_gbnf();
}

}  // namespace

SamplerSettings plain_sampler() { return default_sampling(&SamplingSetting::openai); }

void read_sampling(Fields& f, JsonField SamplingSetting::*api, SamplerSettings& to) {
  for (const SamplingSetting& s : kSamplingSettings) {
    const JsonField& field = s.*api;
    for (const char* name : {field.name, field.alias}) {
      if (!name) continue;
      if (const auto* number = std::get_if<float Sampling::*>(&s.member)) {
        const auto v = f.number(name, field.low, field.high);
        if (v && s.above_low && *v <= s.low)
          f.wrong(name, format("'{}' must be above {}", f.path(name), s.low));
        if (v) to.** number = float(*v);
      } else if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) {
        const auto v = f.whole(name, int64_t(field.low), int64_t(field.high));
        if (v) to.** whole = int(std::max(*v, int64_t(s.low)));
      } else if (const auto* texts = std::get_if<std::vector<std::string> Sampling::*>(&s.member)) {
        if (f.any(name)) to.** texts = f.texts(name, kMaxTexts);
      }
    }
  }
}

void read_logit_bias(Fields& f, const Tokenizer& tokenizer, SamplerSettings& to) {
  const int vocabulary = tokenizer.size();
  const Json* bias = f.object("logit_bias");
  if (!bias) return;
  for (const auto& [key, value] : bias->items()) {
    int id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool text = error != std::errc() || end != key.data() + key.size();
    if (key.empty() || (!text && (id < 0 || id >= vocabulary)))
      return f.wrong("logit_bias", format("'logit_bias': {} is no token id from 0 to {}, and no text",
                                          quoted_briefly(key), vocabulary - 1));
    const double b = value.is_number() ? value.get<double>() : 1000;
    if (!(b >= -100 && b <= 100))
      return f.wrong("logit_bias", "'logit_bias': a bias is a number from -100 to 100");
    const float bias = b == -100 ? -std::numeric_limits<float>::infinity() : b == 100 ? kForced : float(b);
    for (Token token : text ? tokenizer.encode(key, {.add_bos = false}) : std::vector<Token>{id})
      to.logit_bias.emplace_back(token, bias);
    if (to.logit_bias.size() > kMaxBiases)
      return f.wrong("logit_bias", format("'logit_bias' has more than {} tokens", kMaxBiases));
  }
}

void read_max_tokens(Fields& f, const char* name, int64_t least, Settings& to) {
  if (auto v = f.whole(name, least, INT64_MAX)) to.request.max_tokens = int(std::min<int64_t>(*v, INT32_MAX));
}

void set_seed(Fields& f, const char* name, Settings& to) {
  const Json* j = f.any(name);
  if (!j) return;
  if (!j->is_number_integer()) return f.wrong(name, format("'{}' must be a whole number", name));
  to.request.sampler.seed = j->is_number_unsigned() ? j->get<uint64_t>() : uint64_t(j->get<int64_t>());
  to.seeded = true;
}

void apply_preset(const ServedModel& model, Settings& to) {
  const ModelPreset* preset = model.preset();
  if (!preset) return;
  Fields options(preset->options);  // right since it was stored
  read_sampling(options, &SamplingSetting::ollama, to.request.sampler);
  if (options.any("seed")) set_seed(options, "seed", to);
  to.request.stops = options.texts("stop", kMaxStops);
}

void read_certificate(Fields& f) {
  const Json* j = f.any("certificate");
  if (j && !j->is_boolean() && *j != "private")
    f.wrong("certificate", "'certificate' must be true, false or \"private\"");
}

void read_settings(Fields& f, const ServedModel& model, Settings& to) {
  SamplerSettings& s = to.request.sampler;
  s = plain_sampler();
  apply_preset(model, to);
  read_sampling(f, &SamplingSetting::openai, s);
  set_seed(f, "seed", to);
  read_logit_bias(f, model.tokenizer(), s);
  read_certificate(f);
  if (f.any("stop")) to.request.stops = f.texts("stop", kMaxStops);
  for (const std::string& stop : to.request.stops)
    if (stop.empty()) f.wrong("stop", "'stop' has an empty text");
  if (auto v = f.whole("n", 1, kMaxChoices)) to.n = int(*v);
  if (auto v = f.flag("ignore_eos")) to.request.ignore_stop_tokens = *v;
  if (auto v = f.text("grammar")) to.request.grammar = *v;
  read_adapters(f, model, to.request.adapters);
}

void set_schema(Fields& f, const char* name, const Json& schema, Settings& to) {
  const auto grammar = json_schema_grammar(dump(schema));
  if (grammar && !grammar->has_text())
    return f.wrong(name, format("'{}': no value satisfies this schema", f.path(name)));
  if (grammar) return set_grammar(f, name, *grammar, to);
  const Error& e = grammar.error();
  f.wrong(name, format("'{}': {}{}{}", f.path(name), e.message, e.remedy.empty() ? "" : "; ", e.remedy));
}

void set_json_object(Fields& f, const char* name, Settings& to) {
  set_grammar(f, name, json_object_grammar(), to);
}

void read_response_format(Fields& f, const char* name, bool nested, Settings& to) {
  const Json* j = f.object(name);
  if (!j) return;
  Fields form(*j, f.path(name));
  form.need("type");
  const std::string type = form.word("type", {"text", "json_object", "json_schema"}).value_or("");
  const auto read_schema = [&](Fields& of) {
    of.text("name"), of.text("description"), of.flag("strict");
    of.need("schema");
    const Json* schema = of.any("schema");
    if (schema && of.ok()) set_schema(of, "schema", *schema, to);
  };
  if (const Json* schema = type == "json_object" ? form.any("schema") : nullptr) {
    set_schema(form, "schema", *schema, to);  // as llama.cpp and others take it
  } else if (type == "json_object") {
    set_json_object(form, "type", to);
  } else if (type == "json_schema") {
    if (const Json* inner = nested ? form.object("json_schema") : nullptr) {
      Fields of(*inner, form.path("json_schema"));
      read_schema(of);
      if (auto no = of.finish()) form.wrong_as(*no);
    } else if (!nested || form.any("schema")) {  // beside the type, as some clients of llama.cpp write it
      read_schema(form);
    } else {
      form.need("json_schema");
    }
  }
  if (auto no = form.finish()) f.wrong_as(*no);
}

Refused requests_of(const ServedModel& model, const Settings& settings,
                    std::vector<std::vector<Token>> prompts, std::vector<GenerationRequest>& to) {
  const uint64_t seed = settings.seeded ? settings.request.sampler.seed : random_seed();
  for (auto& prompt : prompts) {
    const int64_t size = int64_t(prompt.size());
    if (size > model.context()) return context_exceeded(prompt.size(), model.context());
    for (int i = 0; i < settings.n; i++) {
      to.push_back(settings.request);
      GenerationRequest& r = to.back();
      r.prompt = i + 1 < settings.n ? prompt : std::move(prompt);
      r.sampler.seed = seed + uint64_t(i);
      const int room = model.context() - int(size) + 1;  // the last token needs no place
      if (r.max_tokens > room) r.max_tokens = room;
    }
  }
  return {};
}

}  // namespace gimbal::api
