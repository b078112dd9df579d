// POST /v1/completions: texts that the model continues.
#include <algorithm>

#include "base/format.h"
#include "server/api/call.h"
#include "server/api/logprobs.h"
#include "server/api/openai.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"
#include "server/api/timings.h"

namespace gimbal::api {
namespace {

class CompletionWriter final : public Writer {
 public:
  CompletionWriter(std::string id, ServedModelPtr model, const std::string& version, int top, bool usage,
                   std::vector<std::string> echoes)
      : id_(std::move(id)), model_(std::move(model)), top_(top), usage_(usage), echoes_(std::move(echoes)) {
    head_ = format(
        "\"id\":{},\"object\":\"text_completion\",\"created\":{},\"model\":{},\"system_fingerprint\":{}",
        json_text(id_), unix_time(), json_text(model_->id()), json_text(fingerprint(version)));
    offsets_.resize(echoes_.size());
    for (size_t i = 0; i < echoes_.size(); i++) offsets_[i] = echoes_[i].size();
  }

  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    Json list = Json::array();
    for (size_t i = 0; i < all.size(); i++) {
      Json logprobs;
      if (top_ >= 0) {
        logprobs = empty_logprobs();
        for (const TokenTold& t : all[i].tokens) add_logprobs(logprobs, t, i);
      }
      list.push_back({{"text", echoes_[i] + all[i].text},
                      {"index", i},
                      {"logprobs", std::move(logprobs)},
                      {"finish_reason", finish_word(all[i])}});
    }
    return "{" + head_ + ",\"choices\":" + dump(list) + ",\"usage\":" + dump(openai_usage(u)) +
           ",\"timings\":" + dump(timings_json(all, u)) + "}";
  }

  void begin(std::string& out) override {
    for (size_t i = 0; i < echoes_.size(); i++)
      if (!echoes_[i].empty()) add(out, int(i), echoes_[i], "null", "null");
  }
  void piece(std::string& out, const Piece& p) override {
    std::string logprobs = "null";
    if (top_ >= 0 && p.told) {
      Json j = empty_logprobs();
      add_logprobs(j, *p.told, size_t(p.choice));
      logprobs = dump(j);
    }
    add(out, p.choice, p.text, logprobs, "null");
  }
  void end(std::string& out, const Choice& c, int index) override {
    const Usage u{c.end.prompt_tokens, c.end.shared_tokens, c.end.tokens};
    add(out, index, "", "null", format("\"{}\"", finish_word(c)), dump(timings_json({&c, 1}, u)));
  }
  void finish(std::string& out, const std::vector<Choice>&, const Usage& u) override {
    if (usage_) add_event(out, "", "{" + head_ + ",\"choices\":[],\"usage\":" + dump(openai_usage(u)) + "}");
    out += "data: [DONE]\n\n";
  }
  void error(std::string& out, const ApiError& e) override { add_openai_error(out, e); }

 private:
  void add(std::string& out, int index, std::string_view text, std::string_view logprobs,
           std::string_view finish, const std::string& timings = "") {
    add_event(
        out, "",
        format("{{{},\"choices\":[{{\"text\":{},\"index\":{},\"logprobs\":{},\"finish_reason\":{}}}]{}{}}}",
               head_, json_text(text), index, logprobs, finish, usage_ ? ",\"usage\":null" : "",
               timings.empty() ? "" : ",\"timings\":" + timings));
  }

  static Json empty_logprobs() {
    return {{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()},
            {"text_offset", Json::array()}};
  }
  void add_logprobs(Json& to, const TokenTold& t, size_t choice) {
    const Tokenizer& tokenizer = model_->tokenizer();
    const std::string text = token_text(tokenizer, t.token);
    Json top = Json::object();
    for (const TokenProbability& p : t.top) top[token_text(tokenizer, p.token)] = finite_logprob(p.logprob);
    to["tokens"].push_back(text);
    to["token_logprobs"].push_back(finite_logprob(t.logprob));
    to["top_logprobs"].push_back(std::move(top));
    to["text_offset"].push_back(offsets_[choice]);
    offsets_[choice] += text.size();
  }

  std::string id_, head_;
  ServedModelPtr model_;
  int top_;
  bool usage_;
  std::vector<std::string> echoes_;  // by choice: the prompt, if the answer must repeat it
  std::vector<size_t> offsets_;      // by choice: of the next token in the text
};

constexpr size_t kMostPrompts = 64;

// As it was written: without the token, and the space, that encoding puts before a text.
std::string text_of(const Tokenizer& tokenizer, std::span<const Token> prompt) {
  return tokenizer.decode(prompt[0] == tokenizer.bos() ? prompt.subspan(1) : prompt);
}

}  // namespace

Refused completions(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;

  std::vector<std::vector<Token>> prompts;
  const std::string suffix = f.text("suffix").value_or("");
  if (auto no = suffix.empty() ? raw_prompts(f, "prompt", *model, kMostPrompts, prompts)
                               : prompts_with_suffix(f, *model, suffix, kMostPrompts, prompts))
    return no;
  Settings settings;
  read_settings(f, *model, settings);
  settings.request.max_tokens = 16;  // as the API has it
  read_max_tokens(f, "max_tokens", 0, settings);
  const auto top = f.whole("logprobs", 0, 20);
  if (top) settings.request.logprobs = int(*top);
  const bool echo = f.flag("echo").value_or(false);
  if (echo && top) f.wrong("echo", "'echo' with 'logprobs' is not supported: the prompt's are not computed");
  if (auto best = f.whole("best_of", 1, 20); best && *best != settings.n)
    f.wrong("best_of", "'best_of' is not supported, unless it is 'n'");
  if (echo && !suffix.empty()) f.wrong("echo", "'echo' with 'suffix' is not supported: the prompt has a gap");
  bool usage = false;
  const bool stream = read_stream(f, usage);
  f.harmless({"user", "cache_prompt", "id_slot"});
  if (const Json* schema = f.any("json_schema")) set_schema(f, "json_schema", *schema, settings);
  if (auto no = f.finish()) return no;

  Plan plan;
  plan.prompts = int(prompts.size());
  std::vector<std::string> echoes;
  for (const auto& prompt : prompts)
    for (int i = 0; i < settings.n; i++) echoes.push_back(echo ? text_of(model->tokenizer(), prompt) : "");
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) {
    no->param = "prompt";
    return no;
  }
  plan.id = new_id("cmpl-");
  plan.model = model;
  plan.stream = stream;
  plan.logprobs = top.has_value();
  plan.writer = std::make_unique<CompletionWriter>(plan.id, model, call.services.version,
                                                   top ? int(*top) : -1, usage, std::move(echoes));
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
