// POST /completion and /completions: texts that the model continues, in the form of llama.cpp's server.
#include <algorithm>

#include "base/format.h"
#include "server/api/answer_details.h"
#include "server/api/llama.h"
#include "server/api/prompt.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

// The prompt as text, with its control tokens.
std::string shown(const Tokenizer& tokenizer, std::span<const Token> prompt) {
  std::string text;
  for (Token t : prompt) text += tokenizer.piece(t, true);
  return text;
}

// "a/b" is the member b of the member a, and gets this name. A field that is not there is left out.
Json only_fields(const Json& from, const std::vector<std::string>& names) {
  if (names.empty()) return from;
  Json to = Json::object();
  for (const std::string& name : names) {
    const Json* at = &from;
    for (size_t begin = 0; at && begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      const auto member = at->is_object() ? at->find(name.substr(begin, end - begin)) : at->end();
      at = at->is_object() && member != at->end() ? &*member : nullptr;
      begin = end + 1;
    }
    if (at) to[name] = *at;
  }
  return to;
}

class LlamaWriter final : public Writer {
 public:
  LlamaWriter(std::string id, ServedModelPtr model, const LlamaRequest& r, std::vector<std::string> prompts,
              bool one)
      : id_(std::move(id)),
        model_(std::move(model)),
        settings_(generation_settings(r, *model_)),
        fields_(r.fields),
        prompts_(std::move(prompts)),
        one_(one),
        probabilities_(r.probabilities > 0),
        writes_(r.max_tokens != 0),
        times_(r.times_tokens),
        tokens_(r.returns_tokens),
        told_(prompts_.size()) {}

  std::string whole(const std::vector<Choice>& all, const Usage&) override {
    Json list = Json::array();
    for (size_t i = 0; i < all.size(); i++) {
      Json tokens = Json::array(), probabilities = Json::array();
      for (const TokenEvent& t : all[i].tokens) {
        if (tokens_) tokens.push_back(t.token);
        if (probabilities_) probabilities.push_back(probability(t));
      }
      Json j = last(all[i], i, all[i].text, writes_ ? std::move(tokens) : Json::array());
      if (probabilities_) j["completion_probabilities"] = std::move(probabilities);
      list.push_back(only_fields(j, fields_));
    }
    return dump(one_ ? list[0] : list);
  }

  void piece(std::string& out, const Piece& p) override {
    if (!writes_) return;
    Json tokens = Json::array();
    int& told = told_[size_t(p.choice)];
    if (p.told) tokens.push_back(p.told->token), told = p.told->index + 1;
    Json j = {{"index", p.choice},  {"content", p.text},     {"tokens", std::move(tokens)},
              {"stop", false},      {"id_slot", p.of->slot}, {"tokens_predicted", told},
              {"stop_type", "none"}};
    if (probabilities_ && p.told) j["completion_probabilities"] = {probability(*p.told)};
    if (times_) j["timings"] = timings_so_far(*p.of, told);
    add_event(out, "", dump(j));
  }
  void end(std::string& out, const Choice& c, int index) override {
    add_event(out, "", dump(only_fields(last(c, size_t(index), "", Json::array()), fields_)));
  }
  void finish(std::string&, const std::vector<Choice>&, const Usage&) override {}
  void error(std::string& out, const ApiError& e) override {
    add_event(out, "", error_text(Dialect::OpenAi, e, ""));
  }

 private:
  // Everything but probabilities.
  Json last(const Choice& c, size_t index, const std::string& text, Json tokens) const {
    const GenerationEnd& e = c.end;
    const int written = writes_ ? e.tokens : 0;
    const char* type = c.cut                            ? "limit"
                       : e.finish == Finish::StopToken  ? "eos"
                       : e.finish == Finish::StopString ? "word"
                                                        : "limit";
    return {{"index", index},
            {"id", id_},
            {"content", text},
            {"tokens", std::move(tokens)},
            {"id_slot", c.slot},
            {"stop", true},
            {"model", model_->id()},
            {"tokens_predicted", written},
            {"tokens_evaluated", e.prompt_tokens},
            {"generation_settings", settings_},
            {"prompt", prompts_[index]},
            {"has_new_line", c.text.find('\n') != c.text.npos},
            {"truncated", e.finish == Finish::ContextFull},
            {"stop_type", type},
            {"stopping_word", e.stop},
            {"tokens_cached", e.shared_tokens},
            {"timings", timings_json({&c, 1}, {e.prompt_tokens, e.shared_tokens, written})}};
  }

  Json probability(const TokenEvent& t) const {
    Json j = {{"id", t.token}};
    j.update(token_logprobs(model_->tokenizer(), t));
    for (size_t i = 0; i < t.top.size(); i++) j["top_logprobs"][i]["id"] = t.top[i].token;
    return j;
  }

  std::string id_;
  ServedModelPtr model_;
  Json settings_;
  std::vector<std::string> fields_, prompts_;  // `prompts_`: by choice
  bool one_, probabilities_, writes_, times_, tokens_;
  std::vector<int> told_;  // by choice: its tokens so far
};

}  // namespace

Refused start_completion(Call& call, ServedModelPtr model, LlamaRequest r,
                         std::vector<std::vector<Token>> prompts, bool one) {
  Plan plan;
  plan.prompts = int(prompts.size());
  std::vector<std::string> texts;
  for (const auto& prompt : prompts)
    texts.insert(texts.end(), size_t(r.settings.n), shown(model->tokenizer(), prompt));
  if (auto no = requests_of(*model, r.settings, std::move(prompts), plan.choices)) {
    no->param = "prompt";
    return no;
  }
  plan.id = new_id("cmpl-");
  plan.model = model;
  plan.stream = r.stream;
  plan.logprobs = r.probabilities > 0;
  plan.every_token = r.stream || r.returns_tokens;
  if (r.limits.any()) plan.limits = r.limits;
  plan.writer = std::make_unique<LlamaWriter>(plan.id, model, r, std::move(texts), one && r.settings.n == 1);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

Refused llama_completion(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;
  std::vector<std::vector<Token>> prompts;
  bool one = true;
  if (auto no = raw_prompts(f, "prompt", *model, kMostPrompts, prompts, &one)) return no;
  LlamaRequest r = default_llama_request();
  read_llama_request(f, call, *model, r);
  if (auto no = f.finish()) return no;
  return start_completion(call, std::move(model), std::move(r), std::move(prompts), one);
}

}  // namespace gimbal::api
