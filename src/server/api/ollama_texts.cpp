// POST /api/generate and /api/chat: texts, as lines of JSON.
#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "server/api/adapters.h"
#include "server/api/answer_details.h"
#include "server/api/ollama.h"
#include "server/api/pictures.h"
#include "server/api/prompt.h"

namespace gimbal::api {
namespace {

class LineWriter final : public Writer {
 public:
  LineWriter(ServedModelPtr model, bool chat, bool thinks, bool logprobs, const Call& call)
      : model_(std::move(model)),
        chat_(chat),
        thinks_(thinks),
        logprobs_(logprobs),
        arrived_(call.record->begin),
        load_seconds_(call.load_seconds) {}

  std::string whole(const std::vector<Choice>& all, const Usage&) override {
    Json line = last(all[0], all[0].text, all[0].reasoning, all[0].calls);
    if (logprobs_) line["logprobs"] = Json::array();
    for (const TokenEvent& t : all[0].tokens)
      if (logprobs_) line["logprobs"].push_back(token_logprobs(model_->tokenizer(), t));
    return dump(line) + "\n";
  }
  const char* stream_type() const override { return "application/x-ndjson"; }
  void piece(std::string& out, const Piece& p) override {
    Json line = part(p.text, p.reasoning, p.calls);
    line["done"] = false;
    if (logprobs_ && p.told) line["logprobs"] = Json::array({token_logprobs(model_->tokenizer(), *p.told)});
    out += dump(line) + "\n";
  }
  void end(std::string& out, const Choice& c, int) override { out += dump(last(c, "", "", {})) + "\n"; }
  void finish(std::string&, const std::vector<Choice>&, const Usage&) override {}
  void error(std::string& out, const ApiError& e) override {
    out += error_text(Dialect::Ollama, e, "") + "\n";
  }

 private:
  Json part(const std::string& text, const std::string& reasoning, const std::vector<ToolUse>& calls) const {
    Json j = {{"model", model_->id()}, {"created_at", iso_time(unix_time())}};
    const bool shown = thinks_ && !reasoning.empty();
    if (chat_) {
      j["message"] = {{"role", "assistant"}, {"content", text}};
      if (shown) j["message"]["thinking"] = reasoning;
      for (const ToolUse& t : calls)
        j["message"]["tool_calls"].push_back(
            {{"id", t.id},
             {"function", {{"index", t.index}, {"name", t.name}, {"arguments", parse_json(t.arguments)}}}});
    } else {
      j["response"] = text;
      if (shown) j["thinking"] = reasoning;
    }
    return j;
  }
  Json last(const Choice& c, const std::string& text, const std::string& reasoning,
            const std::vector<ToolUse>& calls) const {
    // Clients divide by them.
    const auto nanoseconds = [](double seconds) { return std::max<int64_t>(1, int64_t(seconds * 1e9)); };
    const double end = c.moments.end, first = c.moments.first > 0 ? c.moments.first : end;
    Json j = part(text, reasoning, calls);
    j["done"] = true;
    j["done_reason"] = finish_word(c) == std::string_view("length") ? "length" : "stop";
    j["total_duration"] = nanoseconds(end - arrived_);
    j["load_duration"] = nanoseconds(load_seconds_);
    j["prompt_eval_count"] = c.end.prompt_tokens;
    j["prompt_eval_duration"] = nanoseconds(first - begin_);
    j["eval_count"] = c.end.tokens;
    j["eval_duration"] = nanoseconds(end - first);
    return j;
  }

  ServedModelPtr model_;
  bool chat_, thinks_, logprobs_;
  double arrived_, load_seconds_, begin_ = now();
};

Refused answer(Call& call, ServedModelPtr model, const Settings& settings, Prompt prompt,
               const ChatInput& input, bool stream, bool chat) {
  Plan plan;
  const bool shows_reasoning = input.thinks.value_or(true);
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(std::move(prompt.tokens));
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) return no;
  plan.id = new_id("ollama-");
  plan.stream = stream;
  prompt.fill(plan, input);
  plan.splits_reasoning = chat || shows_reasoning;
  plan.logprobs = settings.request.logprobs >= 0;
  plan.writer = std::make_unique<LineWriter>(model, chat, shows_reasoning, plan.logprobs, call);
  plan.model = std::move(model);
  call.fill(plan);
  Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

// "think": true, false, or how much.
void read_think(Fields& f, ChatInput& input) {
  const Json* think = f.any("think");
  if (!think) return;
  if (think->is_boolean()) input.thinks = think->get<bool>();
  else if (auto effort = f.word("think", {"low", "medium", "high"}))
    input.effort = *effort, input.thinks = true;
}

// Ollama's messages in OpenAI's form.
void read_ollama_messages(Fields& f, ChatInput& input) {
  Json& to = input.messages;
  const Json* list = f.array("messages");
  if (!list) return;
  for (size_t i = 0; i < list->size() && f.ok(); i++) {
    Fields m((*list)[i], format("messages[{}]", i));
    m.need("role");
    std::string text = m.text("content").value_or("");
    read_pictures(m, input, text);
    Json one = {{"role", m.word("role", {"system", "user", "assistant", "tool"}).value_or("")},
                {"content", std::move(text)}};
    if (auto thinking = m.text("thinking")) one["reasoning_content"] = *thinking;
    for (const char* name : {"tool_name", "tool_call_id"})
      if (auto id = m.text(name)) one[name == std::string_view("tool_name") ? "name" : name] = *id;
    if (const Json* calls = m.array("tool_calls")) one["tool_calls"] = *calls;
    if (auto no = m.finish()) f.wrong_as(*no);
    to.push_back(std::move(one));
  }
}

// The client's next request may unload the model, so this one gives it up first.
void answer_loaded(Call& call, ServedModelPtr model, bool chat) {
  const std::string name = model->id();
  model.reset();
  answer_without_text(call, name, "load", chat);
}

}  // namespace

Refused ollama_generate(Call& call) {
  Fields f(call.body);
  const std::string text = f.text("prompt").value_or("");
  const auto keep_alive = read_keep_alive(f);
  if (Refused no; text.empty() && unloads(call, f, keep_alive, false, no)) return no;
  ServedModelPtr model;
  if (auto no = ollama_model(call, f, true, model)) return no;
  const std::string system = f.text("system").value_or("");
  const bool raw = f.flag("raw").value_or(false), stream = f.flag("stream").value_or(true);
  Settings settings;
  read_ollama_options(call, f, settings);
  read_ollama_common(f, settings);
  ChatInput input;
  read_think(f, input);
  read_adapters(f, *model, settings.request.adapters);
  const std::string suffix = f.text("suffix").value_or("");
  if (!suffix.empty() && (raw || !system.empty()))
    f.wrong("suffix", "'suffix' makes a prompt of its own: leave 'raw' and 'system' out");
  std::string question = text;
  read_pictures(f, input, question);
  if (!input.pictures.empty() && !suffix.empty())
    f.wrong("images", "'suffix' makes a prompt of its own: leave it out");
  f.refuse("template", "the file's own is used; 'raw' is without", "");
  f.refuse("context", "send the text again: what was computed of it is found", Json::array());
  if (auto no = f.finish()) return no;
  call.services.models.stay(model->id(), keep_alive);
  if (text.empty()) return answer_loaded(call, std::move(model), false), std::nullopt;
  Prompt prompt;
  if (!suffix.empty()) {
    std::vector<std::vector<Token>> prompts;
    if (auto no = prompts_with_suffix(f, *model, suffix, 1, prompts)) return no;
    prompt.tokens = std::move(prompts[0]);
  } else if (raw) {
    if (!input.pictures.empty()) {
      if (auto no = check_senses(input, *model)) return no;
      prompt.tokens = model->tokenizer().encode("");
      prompt.tokens.insert(prompt.tokens.end(), input.pictures.size(), kPictureToken);
      settings.request.pictures = input.pictures;
    }
    const auto words = model->tokenizer().encode(text, {.add_bos = prompt.tokens.empty()});
    prompt.tokens.insert(prompt.tokens.end(), words.begin(), words.end());
  } else {
    if (!system.empty()) input.messages.push_back({{"role", "system"}, {"content", system}});
    input.messages.push_back({{"role", "user"}, {"content", question}});
    if (auto no = chat_prompt(call, *model, input, settings, prompt)) return no;
  }
  if (raw || !suffix.empty()) input.thinks = false;
  return answer(call, model, settings, std::move(prompt), input, stream, false);
}

Refused ollama_chat(Call& call) {
  Fields f(call.body);
  ChatInput input;
  read_ollama_messages(f, input);
  const auto keep_alive = read_keep_alive(f);
  if (Refused no; input.messages.empty() && unloads(call, f, keep_alive, true, no)) return no;
  ServedModelPtr model;
  if (auto no = ollama_model(call, f, true, model)) return no;
  const bool stream = f.flag("stream").value_or(true);
  read_tools(f, input.tools);
  Settings settings;
  read_ollama_options(call, f, settings);
  read_ollama_common(f, settings);
  read_think(f, input);
  read_adapters(f, *model, settings.request.adapters);
  if (auto no = f.finish()) return no;
  call.services.models.stay(model->id(), keep_alive);
  if (input.messages.empty()) return answer_loaded(call, std::move(model), true), std::nullopt;
  Prompt prompt;
  if (auto no = chat_prompt(call, *model, input, settings, prompt)) return no;
  return answer(call, model, settings, std::move(prompt), input, stream, true);
}

}  // namespace gimbal::api
