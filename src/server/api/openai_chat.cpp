// POST /v1/chat/completions
#include "base/format.h"
#include "server/api/answer_details.h"
#include "server/api/call.h"
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
  ChatWriter(std::string id, const ChatCall& chat, const std::string& version)
      : id_(std::move(id)),
        fingerprint_(fingerprint(version)),
        model_(chat.model),
        choices_(chat.settings.n),
        usage_(chat.usage),
        logprobs_(chat.logprobs),
        times_(chat.times_tokens) {
    // What every event begins with.
    head_ = format(
        "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},"
        "\"system_fingerprint\":{},\"choices\":[",
        json_text(id_), unix_time(), json_text(model_->id()), json_text(fingerprint_));
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
        for (const TokenEvent& t : c.tokens) tokens.push_back(token_logprobs(model_->tokenizer(), t));
        one["logprobs"] = {{"content", std::move(tokens)}, {"refusal", nullptr}};
      }
      one["finish_reason"] = finish_word(c);
      list.push_back(std::move(one));
    }
    return dump({{"id", id_},
                 {"object", "chat.completion"},
                 {"created", unix_time()},
                 {"model", model_->id()},
                 {"system_fingerprint", fingerprint_},
                 {"choices", std::move(list)},
                 {"usage", openai_usage(u)},
                 {"timings", timings_json(all, u)}});
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
          "null", times_ && p.told ? dump(timings_so_far(*p.of, p.told->index + 1)) : "");
  }
  void end(std::string& out, const Choice& c, int index) override {
    const Usage u{c.end.prompt_tokens, c.end.shared_tokens, c.end.tokens};
    add(out, index, "{}", "null", format("\"{}\"", finish_word(c)), dump(timings_json({&c, 1}, u)));
  }
  void finish(std::string& out, const std::vector<Choice>& all, const Usage& u) override {
    if (usage_)
      out += head_ + "],\"usage\":" + dump(openai_usage(u)) + ",\"timings\":" + dump(timings_json(all, u)) +
             "}\n\n";
    out += "data: [DONE]\n\n";
  }
  void error(std::string& out, const ApiError& e) override { add_openai_error(out, e); }

 private:
  void add(std::string& out, int index, std::string_view delta, std::string_view logprobs,
           std::string_view finish, std::string_view timings = {}) {
    out.append(head_).append("{\"index\":").append(format("{}", index));
    out.append(",\"delta\":").append(delta).append(",\"logprobs\":").append(logprobs);
    out.append(",\"finish_reason\":").append(finish).append("}]");
    if (usage_) out.append(",\"usage\":null");
    if (!timings.empty()) out.append(",\"timings\":").append(timings);
    out.append("}\n\n");
  }

  std::string id_, fingerprint_, head_;
  ServedModelPtr model_;
  int choices_;
  bool usage_, logprobs_, times_;
};

// Fields that are unsupported, or do not affect the answer.
void refuse_others(Fields& f) {
  f.harmless({"user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  f.harmless({"cache_prompt", "id_slot"});  // prompts are kept and found in any case
  f.refuse("store", "answers are not kept", false);
  f.word("service_tier", {"auto", "default"});
  f.refuse("modalities", "the only one is text", Json{"text"});
  f.refuse("audio", "gimbal writes texts only");
  f.refuse("web_search_options", "gimbal reads nothing but the request");
  f.refuse("functions", "give 'tools'");
  f.refuse("function_call", "give 'tool_choice'");
}

// A hint at the answer's text, to save time. gimbal guesses tokens by itself (--draft).
void read_prediction(Fields& f) {
  const Json* j = f.object("prediction");
  if (!j) return;
  Fields prediction(*j, "prediction");
  prediction.need("type");
  prediction.word("type", {"content"});
  prediction.need("content");
  if (const Json* content = prediction.any("content")) {
    std::string text;
    if (auto no = content_text(*content, "prediction.content", text)) f.wrong_as(*no);
  }
  if (auto no = prediction.finish()) f.wrong_as(*no);
}

void read_thinking(Fields& f, ChatInput& to, Settings& settings) {
  read_effort(f, "reasoning_effort", to);
  for (const char* name : {"reasoning_budget", "thinking_budget_tokens"})  // of llama.cpp's server
    read_reasoning_budget(f, name, -1, settings);
  if (const Json* j = f.object("chat_template_kwargs")) {
    if (auto ok = set_variables(*j, to); !ok)
      f.wrong("chat_template_kwargs", format("'chat_template_kwargs': {}", ok.error().message));
  }
}

// "reasoning_format" of llama.cpp's server: whether the reasoning stays in the answer's text.
std::optional<bool> read_reasoning_format(Fields& f) {
  const auto word = f.word("reasoning_format", {"auto", "deepseek", "none"});
  return word ? std::optional(*word == "none") : std::nullopt;
}

// "continue_final_message": the last message is the beginning of the answer. "add_generation_prompt": false
// alone: the prompt ends behind the last message.
void read_continuation(Fields& f, ChatInput& to) {
  const bool continues = f.flag("continue_final_message").value_or(false);
  const auto opens = f.flag("add_generation_prompt");
  to.opens_answer = opens.value_or(true) || continues;
  if (!continues || !f.ok()) return;
  if (opens == true)
    return f.wrong("add_generation_prompt",
                   "'add_generation_prompt' begins a new answer, and 'continue_final_message' continues one: "
                   "give one of them");
  const Json& last = to.messages.empty() ? Json() : to.messages.back();
  if (to.messages.empty() || last["role"] != "assistant" || last.contains("tool_calls") ||
      last["content"].get_ref<const std::string&>().empty())
    return f.wrong(
        "continue_final_message",
        "'continue_final_message' needs a last message of the assistant, with a text and no calls");
  to.begun = last["content"].get<std::string>();
  to.messages.erase(to.messages.size() - 1);
}

}  // namespace

Refused read_chat(Call& call, ChatCall& to) {
  Fields f(call.body);
  if (auto no = find_model(call, f, true, to.model)) return no;

  read_messages(f, to.input);
  read_continuation(f, to.input);
  read_tools(f, to.input.tools);
  read_tool_choice(f, to.input);
  Settings& settings = to.settings;
  read_thinking(f, to.input, settings);
  const auto keeps_reasoning = read_reasoning_format(f);
  read_settings(f, *to.model, settings);
  read_response_format(f, "response_format", true, settings);
  if (const Json* schema = f.any("json_schema")) set_schema(f, "json_schema", *schema, settings);
  for (const char* limit : {"max_tokens", "max_completion_tokens"}) read_max_tokens(f, limit, 1, settings);
  to.logprobs = f.flag("logprobs").value_or(false);
  const auto top = f.whole("top_logprobs", 0, 20);
  if (top && !to.logprobs) f.wrong("top_logprobs", "'top_logprobs' needs 'logprobs': true");
  if (to.logprobs) settings.request.logprobs = int(top.value_or(0));
  to.stream = read_stream(f, to.usage);
  to.times_tokens = f.flag("timings_per_token").value_or(false);
  read_verbosity(f);
  read_prediction(f);
  refuse_others(f);
  if (auto no = f.finish()) return no;
  if (auto no = chat_prompt(call, *to.model, to.input, settings, to.prompt)) return no;
  to.prompt.keeps_reasoning = keeps_reasoning.value_or(call.services.keeps_reasoning);
  return {};
}

Refused chat_completions(Call& call) {
  ChatCall chat;
  if (auto no = read_chat(call, chat)) return no;
  Plan plan;
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(std::move(chat.prompt.tokens));
  if (auto no = requests_of(*chat.model, chat.settings, std::move(prompts), plan.choices)) return no;
  plan.id = new_id("chatcmpl-");
  plan.model = chat.model;
  plan.stream = chat.stream;
  chat.prompt.fill(plan, chat.input);
  plan.logprobs = chat.logprobs;
  plan.writer = std::make_unique<ChatWriter>(plan.id, chat, call.services.version);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

}  // namespace gimbal::api
