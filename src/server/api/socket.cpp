// GET /ws/generate: texts over a WebSocket. Each message of the client is a request in JSON; its answer is
// text frames, the last of which has "done": true.
#include <mutex>

#include "base/clock.h"
#include "base/format.h"
#include "server/api/answer_details.h"
#include "server/api/call.h"
#include "server/api/prompt.h"
#include "server/api/settings.h"
#include "server/http/websocket.h"

namespace gimbal::api {
namespace {

using http::Opcode;

// The form of shimmy's server: pieces of text as they are, then {"done":true}. With `events`, each frame is
// an object, which also has the reasoning and, at the end, the numbers.
class FrameWriter final : public Writer {
 public:
  FrameWriter(std::string model, bool events) : model_(std::move(model)), events_(events) {}

  std::string whole(const std::vector<Choice>& all, const Usage& u) override {
    Json j = {{"text", all[0].text}};
    if (!all[0].reasoning.empty()) j["reasoning"] = all[0].reasoning;
    j.update(last(all, u));
    return dump(j);
  }
  void piece(std::string& out, const Piece& p) override {
    if (events_ && !p.reasoning.empty()) out += http::frame(Opcode::Text, dump({{"reasoning", p.reasoning}}));
    if (!p.text.empty()) out += http::frame(Opcode::Text, events_ ? dump({{"text", p.text}}) : p.text);
  }
  void end(std::string&, const Choice&, int) override {}
  void finish(std::string& out, const std::vector<Choice>& all, const Usage& u) override {
    out += http::frame(Opcode::Text, events_ ? dump(last(all, u)) : R"({"done":true})");
  }
  void error(std::string& out, const ApiError& e) override {
    out += http::frame(Opcode::Text, error_text(Dialect::WebSocket, e, ""));
  }

 private:
  Json last(const std::vector<Choice>& all, const Usage& u) const {
    return {{"done", true},
            {"model", model_},
            {"finish_reason", finish_word(all[0])},
            {"usage",
             {{"prompt_tokens", u.prompt_tokens},
              {"cached_tokens", u.shared_tokens},
              {"completion_tokens", u.completion_tokens}}},
            {"timings", timings_json(all, u)}};
  }

  std::string model_;
  bool events_;
};

// A conversation, or one question with or without the words of the system.
void read_question(Fields& f, ChatInput& to, bool& raw, std::string& prompt) {
  const bool has_messages = f.array("messages");
  const auto text = f.text("prompt");
  raw = f.flag("raw").value_or(false);
  const std::string system = f.text("system").value_or("");
  if (has_messages) read_messages(f, to);
  if (has_messages == text.has_value())
    return f.wrong("prompt", "a message has either 'prompt' or 'messages'");
  if (raw && has_messages) return f.wrong("raw", "'raw' is for 'prompt': 'messages' need the chat template");
  if (raw && !system.empty()) return f.wrong("system", "'system' needs the chat template: leave 'raw' out");
  if (!system.empty()) to.messages.insert(to.messages.begin(), Json{{"role", "system"}, {"content", system}});
  if (text) to.messages.push_back({{"role", "user"}, {"content", *text}});
  prompt = text.value_or("");
}

Refused answer(Call& call, std::shared_ptr<Answer>& to) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;
  ChatInput input;
  Settings settings;
  bool raw = false;
  std::string text;
  read_question(f, input, raw, text);
  read_effort(f, "reasoning_effort", input);
  read_reasoning_budget(f, "reasoning_budget", -1, settings);
  read_settings(f, *model, settings);
  if (settings.n != 1) f.wrong("n", "'n' must be 1: a socket has one answer at a time");
  read_response_format(f, "response_format", true, settings);
  read_max_tokens(f, "max_tokens", 1, settings);
  const bool stream = f.flag("stream").value_or(true), events = f.flag("events").value_or(false);
  if (auto no = f.finish()) return no;

  Plan plan;
  Prompt prompt;
  if (raw) prompt.tokens = model->tokenizer().encode(text);
  else if (auto no = chat_prompt(call, *model, input, settings, prompt)) return no;
  std::vector<std::vector<Token>> prompts = {std::move(prompt.tokens)};
  if (auto no = requests_of(*model, settings, std::move(prompts), plan.choices)) return no;
  plan.id = new_id("ws-");
  plan.stream = stream;
  if (!raw) prompt.fill(plan, input);
  plan.writer = std::make_unique<FrameWriter>(model->id(), events);
  plan.model = std::move(model);
  call.fill(plan);
  to = Answer::start(call.services, std::move(plan), call.exchange);
  return {};
}

class GenerateSocket final : public http::Messages {
 public:
  explicit GenerateSocket(const Call& opened)
      : services_(opened.services),
        client_(opened.client),
        owner_(opened.owner),
        path_(opened.request.path),
        peer_(opened.request.peer) {}

  void handle(uint64_t number, std::string text, std::shared_ptr<http::Exchange> exchange) override {
    if (is_cancel(text)) return exchange->answer({204, ""});  // its answer has ended meanwhile
    const std::string id = new_id("req_");
    const auto record = std::make_shared<RequestRecord>(
        RequestRecord{id, Dialect::WebSocket, "MESSAGE", path_, peer_, path_});
    record->begin = now();
    if (services_.log.prompts) record->body = text;
    exchange = logged(services_.log, services_.counts, record, std::move(exchange));
    Call call{services_, {}, std::move(exchange), Dialect::WebSocket, id, record, {}, client_, owner_, {}};
    std::shared_ptr<Answer> started;
    auto no = read_body(call, std::move(text));
    if (!no) no = answer(call, started);
    if (no) {
      record->end = no->code;
      record->why = no->message;
      return call.exchange->answer(error_response(Dialect::WebSocket, *no, id));
    }
    {
      const std::lock_guard lock(mutex_);
      answered_ = number, answer_ = started;
      if (cancelled_ != number) return;
    }
    started->end(cancelled());
  }

  bool take_early(uint64_t number, std::string_view text) override {
    if (!is_cancel(text)) return false;
    std::shared_ptr<Answer> running;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = number;
      if (answered_ == number) running = answer_.lock();
    }
    if (running) running->end(cancelled());
    return true;
  }

  http::Response failed() override {
    return error_response(Dialect::WebSocket, {500, "the message failed inside the server"}, "");
  }

 private:
  static bool is_cancel(std::string_view text) {
    if (text.size() > 64) return false;
    const Json j = parse_json(text);
    return j.is_object() && j.size() == 1 && j.value("cancel", Json()) == Json(true);
  }
  static ApiError cancelled() { return {499, "the client cancelled this answer", "", "cancelled"}; }

  Services& services_;
  const std::string client_, owner_, path_, peer_;
  std::mutex mutex_;
  uint64_t answered_ = 0, cancelled_ = 0;  // numbers of messages
  std::weak_ptr<Answer> answer_;           // to `answered_`
};

}  // namespace

// For the description of the API.
Refused socket_message(Call& call) {
  std::shared_ptr<Answer> started;
  return answer(call, started);
}

Refused open_socket(Call& call) {
  http::Response accepted;
  if (const auto no = http::accept_socket(call.request, accepted)) {
    call.more_headers.insert(call.more_headers.end(), accepted.headers.begin(), accepted.headers.end());
    http::Response refusal = error_response(call.dialect, {no->status, no->why}, call.id);
    call.answer(std::move(refusal));
    return {};
  }
  if (call.services.draining) return ApiError{503, "the server is about to end", "", "", 5};
  call.add_headers(accepted.headers);
  call.exchange->open(std::move(accepted), std::make_shared<GenerateSocket>(call));
  return {};
}

}  // namespace gimbal::api
