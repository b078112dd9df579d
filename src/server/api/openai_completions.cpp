// POST /v1/completions: texts that the model continues.
#include <algorithm>

#include "base/format.h"
#include "server/api/answer_details.h"
#include "server/api/call.h"
#include "server/api/openai.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"

namespace gimbal::api {
namespace {

// Clients index a text by characters.
size_t characters(std::string_view text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
}

// The prompt that an answer repeats.
struct Echo {
  std::string text;           // as it was written: without the BOS token, and the space that encoding adds
  std::vector<Token> tokens;  // empty unless their log-probabilities are wanted
};

// One choice's log-probabilities, token by token.
class Logprobs {
 public:
  explicit Logprobs(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // `told`: the tokens after the first one, which follows nothing and has no probability.
  void add_prompt(const Echo& echo, const std::vector<TokenEvent>& told, size_t& offset) {
    StreamDecoder decoder(tokenizer_);
    for (size_t i = 0; i < echo.tokens.size(); i++) {
      if (i == 0) add(echo.tokens[0], nullptr, offset);
      else if (i <= told.size()) add(echo.tokens[i], &told[i - 1], offset);
      // The echoed text begins without BOS, and the decoder drops the space of the first token that it gets.
      if (i > 0 || echo.tokens[0] != tokenizer_.bos()) offset += characters(decoder.push(echo.tokens[i]));
    }
    offset = characters(echo.text);
  }
  void add(const TokenEvent& t, size_t& offset) {
    add(t.token, &t, offset);
    offset += characters(token_text(tokenizer_, t.token));
  }
  Json take() { return std::move(all_); }

 private:
  void add(Token token, const TokenEvent* told, size_t offset) {
    Json top;
    if (told) {
      top = Json::object();
      for (const TokenProbability& p : told->top)
        top[token_text(tokenizer_, p.token)] = finite_logprob(p.logprob);
    }
    all_["tokens"].push_back(token_text(tokenizer_, token));
    all_["token_logprobs"].push_back(told ? Json(finite_logprob(told->logprob)) : Json());
    all_["top_logprobs"].push_back(std::move(top));
    all_["text_offset"].push_back(offset);
  }

  const Tokenizer& tokenizer_;
  Json all_ = {{"tokens", Json::array()},
               {"token_logprobs", Json::array()},
               {"top_logprobs", Json::array()},
               {"text_offset", Json::array()}};
};

class CompletionWriter final : public Writer {
 public:
  // `echoes`: by prompt, each with `n` choices.
  CompletionWriter(std::string id, ServedModelPtr model, const std::string& version, bool logprobs,
                   bool usage, std::vector<Echo> echoes, int n)
      : id_(std::move(id)),
        model_(std::move(model)),
        logprobs_(logprobs),
        usage_(usage),
        echoes_(std::move(echoes)),
        n_(size_t(n)),
        offsets_(echoes_.size() * n_) {
    head_ = format(
        "\"id\":{},\"object\":\"text_completion\",\"created\":{},\"model\":{},\"system_fingerprint\":{}",
        json_text(id_), unix_time(), json_text(model_->id()), json_text(fingerprint(version)));
    for (size_t i = 0; i < offsets_.size(); i++) offsets_[i] = characters(echo(i).text);
  }

  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    Json list = Json::array();
    for (size_t i = 0; i < all.size(); i++) {
      const Choice& c = all[i];
      Json logprobs;
      if (logprobs_) {
        Logprobs of(model_->tokenizer());
        add_prompt(of, c, i);
        for (const TokenEvent& t : c.tokens) of.add(t, offsets_[i]);
        if (c.stop) of.add(*c.stop, offsets_[i]);
        logprobs = of.take();
      }
      list.push_back({{"text", echo(i).text + c.text},
                      {"index", i},
                      {"logprobs", std::move(logprobs)},
                      {"finish_reason", finish_word(c)}});
    }
    return "{" + head_ + ",\"choices\":" + dump(list) + ",\"usage\":" + dump(openai_usage(u)) +
           ",\"timings\":" + dump(timings_json(all, u)) + "}";
  }

  void prompt(std::string& out, const Choice& c, int index) override {
    const Echo& e = echo(size_t(index));
    if (e.text.empty() && e.tokens.empty()) return;
    Logprobs of(model_->tokenizer());
    if (!e.tokens.empty()) add_prompt(of, c, size_t(index));
    add(out, index, e.text, e.tokens.empty() ? "null" : dump(of.take()), "null");
  }
  void piece(std::string& out, const Piece& p) override {
    add(out, p.choice, p.text, logprobs_ && p.told ? logprobs_of(*p.told, size_t(p.choice)) : "null", "null");
  }
  void end(std::string& out, const Choice& c, int index) override {
    const Usage u{c.end.prompt_tokens, c.end.shared_tokens, c.end.tokens};
    add(out, index, "", c.stop ? logprobs_of(*c.stop, size_t(index)) : "null",
        format("\"{}\"", finish_word(c)), dump(timings_json({&c, 1}, u)));
  }
  void finish(std::string& out, const std::vector<Choice>&, const Usage& u) override {
    if (usage_) add_event(out, "", "{" + head_ + ",\"choices\":[],\"usage\":" + dump(openai_usage(u)) + "}");
    out += "data: [DONE]\n\n";
  }
  void error(std::string& out, const ApiError& e) override { add_openai_error(out, e); }

 private:
  const Echo& echo(size_t choice) const { return echoes_[choice / n_]; }
  void add_prompt(Logprobs& to, const Choice& c, size_t index) {
    size_t offset = 0;
    to.add_prompt(echo(index), c.prompt, offset);
  }
  std::string logprobs_of(const TokenEvent& t, size_t choice) {
    Logprobs of(model_->tokenizer());
    of.add(t, offsets_[choice]);
    return dump(of.take());
  }
  void add(std::string& out, int index, std::string_view text, std::string_view logprobs,
           std::string_view finish, const std::string& timings = "") {
    add_event(
        out, "",
        format("{{{},\"choices\":[{{\"text\":{},\"index\":{},\"logprobs\":{},\"finish_reason\":{}}}]{}{}}}",
               head_, json_text(text), index, logprobs, finish, usage_ ? ",\"usage\":null" : "",
               timings.empty() ? "" : ",\"timings\":" + timings));
  }

  std::string id_, head_;
  ServedModelPtr model_;
  bool logprobs_, usage_;
  std::vector<Echo> echoes_;
  size_t n_;                     // choices of each prompt
  std::vector<size_t> offsets_;  // by choice: of the next token in the text
};

// Log-probabilities of all prompts in an answer: a number for each token, and for each likely one in its
// place.
constexpr size_t kMostLogprobs = 1 << 18;

std::string text_of(const Tokenizer& tokenizer, std::span<const Token> prompt) {
  return tokenizer.decode(prompt[0] == tokenizer.bos() ? prompt.subspan(1) : prompt);
}

}  // namespace

Refused completions(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;

  std::vector<std::vector<Token>> prompts;
  f.any("prompt");  // of either form below
  const std::string suffix = f.text("suffix").value_or("");
  if (auto no = suffix.empty() ? raw_prompts(f, "prompt", *model, kMostPrompts, prompts)
                               : prompts_with_suffix(f, *model, suffix, kMostPrompts, prompts))
    return no;
  Settings settings;
  read_settings(f, *model, settings);
  read_response_format(f, "response_format", true, settings);
  settings.request.max_tokens = 16;  // as the API has it
  read_max_tokens(f, "max_tokens", 0, settings);
  const auto top = f.whole("logprobs", 0, 20);
  if (top) settings.request.logprobs = int(*top);
  const bool echo = f.flag("echo").value_or(false);
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
  settings.request.scores_prompt = echo && top;
  std::vector<Echo> echoes;
  size_t told = 0;
  for (const auto& prompt : prompts) {
    echoes.push_back({echo ? text_of(model->tokenizer(), prompt) : "", {}});
    if (settings.request.scores_prompt) echoes.back().tokens = prompt;
    told += prompt.size() * size_t(settings.n);
  }
  if (settings.request.scores_prompt && told * size_t(1 + *top) > kMostLogprobs)
    return wrong_field("prompt",
                       format("'echo' with 'logprobs': {} makes {} log-probabilities of the prompts, and an "
                              "answer has at most {}: send fewer or shorter prompts, or ask for fewer",
                              *top, told * size_t(1 + *top), kMostLogprobs));
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) {
    no->param = "prompt";
    return no;
  }
  plan.id = new_id("cmpl-");
  plan.model = model;
  plan.stream = stream;
  plan.logprobs = top.has_value();
  plan.writer = std::make_unique<CompletionWriter>(plan.id, model, call.services.version, top.has_value(),
                                                   usage, std::move(echoes), settings.n);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
