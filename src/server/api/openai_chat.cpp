// POST /v1/chat/completions
#include "base/format.h"
#include "server/api/call.h"
#include "server/api/logprobs.h"
#include "server/api/openai.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

Json openai_tool_call(const ToolUse& t) {
  return {{"id", t.id}, {"type", "function"}, {"function", {{"name", t.name}, {"arguments", t.arguments}}}};
}

class ChatWriter final : public Writer {
 public:
  ChatWriter(std::string id, ServedModelPtr model, int choices, bool usage, bool logprobs)
      : id_(std::move(id)), model_(std::move(model)), choices_(choices), usage_(usage), logprobs_(logprobs) {
    // What every event begins with.
    head_ = format(
        "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\"choices\":[",
        json_text(id_), unix_time(), json_text(model_->id()));
  }

  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    Json list = Json::array();
    for (size_t i = 0; i < all.size(); i++) {
      const Choice& c = all[i];
      Json message = {{"role", "assistant"}, {"content", c.text}, {"refusal", nullptr}};
      if (!c.reasoning.empty()) message["reasoning_content"] = c.reasoning;
      if (!c.calls.empty()) {
        if (c.text.empty()) message["content"] = nullptr;
        for (const ToolUse& t : c.calls) message["tool_calls"].push_back(openai_tool_call(t));
      }
      Json one = {{"index", i}, {"message", std::move(message)}, {"logprobs", nullptr}};
      if (logprobs_) {
        Json tokens = Json::array();
        for (const TokenTold& t : c.tokens) tokens.push_back(token_logprobs(model_->tokenizer(), t));
        one["logprobs"] = {{"content", std::move(tokens)}, {"refusal", nullptr}};
      }
      one["finish_reason"] = finish_word(c);
      list.push_back(std::move(one));
    }
    return dump({{"id", id_},
                 {"object", "chat.completion"},
                 {"created", unix_time()},
                 {"model", model_->id()},
                 {"choices", std::move(list)},
                 {"usage", openai_usage(u)}});
  }

  void begin(std::string& out) override {
    for (int i = 0; i < choices_; i++)
      add(out, i, R"({"role":"assistant","content":"","refusal":null})", "null", "null");
  }
  void piece(std::string& out, const Piece& p) override {
    std::string logprobs = "null";
    if (logprobs_ && p.told)
      logprobs = dump({{"content", {token_logprobs(model_->tokenizer(), *p.told)}}, {"refusal", nullptr}});
    if (!p.reasoning.empty())
      add(out, p.choice, "{\"reasoning_content\":" + json_text(p.reasoning) + "}", logprobs, "null");
    for (const ToolUse& t : p.calls) {
      Json call = {{"index", t.index}};
      call.update(openai_tool_call(t));
      add(out, p.choice, dump({{"tool_calls", {std::move(call)}}}), "null", "null");
    }
    if ((p.reasoning.empty() && p.calls.empty()) || !p.text.empty())
      add(out, p.choice, "{\"content\":" + json_text(p.text) + "}", p.reasoning.empty() ? logprobs : "null",
          "null");
  }
  void end(std::string& out, const Choice& c, int index) override {
    add(out, index, "{}", "null", format("\"{}\"", finish_word(c)));
  }
  void finish(std::string& out, const std::vector<Choice>&, const Usage& u) override {
    if (usage_) out += head_ + "],\"usage\":" + dump(openai_usage(u)) + "}\n\n";
    out += "data: [DONE]\n\n";
  }
  void error(std::string& out, const ApiError& e) override { add_openai_error(out, e); }

 private:
  void add(std::string& out, int index, std::string_view delta, std::string_view logprobs,
           std::string_view finish) {
    out.append(head_).append("{\"index\":").append(format("{}", index));
    out.append(",\"delta\":").append(delta).append(",\"logprobs\":").append(logprobs);
    out.append(",\"finish_reason\":").append(finish).append("}]");
    if (usage_) out.append(",\"usage\":null");
    out.append("}\n\n");
  }

  std::string id_, head_;
  ServedModelPtr model_;
  int choices_;
  bool usage_, logprobs_;
};

// Fields that are unsupported, or do not affect the answer.
void refuse_others(Fields& f) {
  f.harmless({"user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  f.refuse("store", "answers are not kept", false);
  f.word("service_tier", {"auto", "default"});
  f.refuse("modalities", "the only one is text", Json{"text"});
  f.refuse("audio", "gimbal writes texts only");
  f.refuse("prediction", "gimbal guesses by itself");
  f.refuse("verbosity", "ask for it in a message");
  f.refuse("web_search_options", "gimbal reads nothing but the request");
  f.refuse("functions", "give 'tools'");
  f.refuse("function_call", "give 'tool_choice'");
}

void read_thinking(Fields& f, ChatInput& to, Settings& settings) {
  read_effort(f, "reasoning_effort", to);
  for (const char* name : {"reasoning_budget", "thinking_budget_tokens"})  // of llama.cpp's server
    read_reasoning_budget(f, name, -1, settings);
  if (const Json* j = f.object("chat_template_kwargs")) {
    Fields kwargs(*j, "chat_template_kwargs");
    for (const char* name : {"enable_thinking", "thinking"})
      if (auto thinks = kwargs.flag(name)) to.thinks = to.asks_to_think = *thinks;
    if (auto no = kwargs.finish()) f.wrong_as(*no);
  }
}

}  // namespace

Refused chat_completions(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;

  ChatInput input;
  read_messages(f, input.messages);
  read_tools(f, input.tools);
  read_tool_choice(f, input);
  Settings settings;
  read_thinking(f, input, settings);
  read_settings(f, *model, settings);
  read_response_format(f, "response_format", true, settings);
  for (const char* limit : {"max_tokens", "max_completion_tokens"}) read_max_tokens(f, limit, 1, settings);
  const bool logprobs = f.flag("logprobs").value_or(false);
  const auto top = f.whole("top_logprobs", 0, 20);
  if (top && !logprobs) f.wrong("top_logprobs", "'top_logprobs' needs 'logprobs': true");
  if (logprobs) settings.request.logprobs = int(top.value_or(0));
  bool usage = false;
  const bool stream = read_stream(f, usage);
  refuse_others(f);
  if (auto no = f.finish()) return no;

  Prompt prompt;
  if (auto no = chat_prompt(call, *model, input, settings, prompt)) return no;
  Plan plan;
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(std::move(prompt.tokens));
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) return no;
  plan.id = new_id("chatcmpl-");
  plan.model = model;
  plan.stream = stream;
  prompt.fill(plan, input);
  plan.logprobs = logprobs;
  plan.writer = std::make_unique<ChatWriter>(plan.id, model, settings.n, usage, logprobs);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
