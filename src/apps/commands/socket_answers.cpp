#include "apps/commands/socket_answers.h"

#include "apps/toolkit/terminal.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr double kLook = 0.25;         // seconds between two looks at Ctrl-C
constexpr double kCancelSeconds = 10;  // for the server to end a cancelled answer

std::string text_at(const Json& j, const char* name) {
  const auto at = j.find(name);
  return at != j.end() && at->is_string() ? at->get<std::string>() : "";
}

double number_at(const Json& j, const char* group, const char* name) {
  const Json inner = j.value(group, Json::object());
  return inner.is_object() && inner.contains(name) && inner[name].is_number() ? inner[name].get<double>() : 0;
}

const char* remedy_for(const Json& last) {
  const std::string code = text_at(last, "code");
  if (text_at(last, "param") == "model")
    return "--model NAME selects one of the server's models; GET /v1/models lists them";
  if (code == "context_length_exceeded") return "/clear begins a new conversation, /undo shortens this one";
  if (code == "queue_full" || code == "templates_busy") return "the server is busy: try again later";
  return "";
}

std::string stats_of(const Json& last) {
  return format(
      "{} tokens, {:.1f} per second; prompt {} tokens, {} of them computed before, {:.2f} s",
      int64_t(number_at(last, "usage", "completion_tokens")),
      number_at(last, "timings", "predicted_per_second"), int64_t(number_at(last, "usage", "prompt_tokens")),
      int64_t(number_at(last, "usage", "cached_tokens")), number_at(last, "timings", "prompt_ms") / 1000);
}

}  // namespace

Result<Url> socket_url(const std::string& text) {
  std::string http = text;
  if (text.starts_with("ws://")) http = "http://" + text.substr(5);
  else if (text.starts_with("wss://")) http = "https://" + text.substr(6);
  else if (text.find("://") == text.npos) http = "http://" + text;
  auto url = Url::parse(http);
  if (!url || url->host.empty() || !url->credentials.empty())
    return Error{Code::Usage,
                 format("{} is not the address of a server", gimbal::quoted(text)),
                 "give one such as 127.0.0.1:8080, ws://HOST:PORT or wss://HOST; keys by --api-key",
                 "",
                 "URL",
                 text,
                 "an address"};
  if (url->path == "/") url->path = "/ws/generate";
  return url;
}

Status SocketAnswers::connect() {
  // Nothing arrives between two answers but pings and the end.
  if (socket_ && !socket_->receive(0)) socket_.reset();
  if (socket_) return Done{};
  auto opened = SocketClient::open(settings_.url, settings_.api_key);
  if (!opened) return opened.error();
  socket_ = std::move(*opened);
  return Done{};
}

Result<ChatReply> SocketAnswers::answer(Conversation& conversation, const ChatSink& sink) {
  if (auto ok = connect(); !ok) return ok.error();
  Json message = settings_.fields;
  message["events"] = true;
  message["messages"] = parse_json(conversation.to_json())["messages"];
  if (auto ok = socket_->send(dump(message)); !ok) {
    socket_.reset();
    return ok.error();
  }
  auto reply = read_answer(sink);
  if (!reply && !last_.contains("error")) socket_.reset();  // its remaining frames belong to no question
  return reply;
}

Status SocketAnswers::cancel() { return socket_->send(R"({"cancel":true})"); }

Result<ChatReply> SocketAnswers::read_answer(const ChatSink& sink) {
  ChatReply reply;
  last_ = Json::object();
  double cancelled = 0;  // when
  for (;;) {
    auto text = socket_->receive(kLook);
    if (!text) return text.error();
    bool go_on = !InterruptGuard::interrupted();
    if (*text) {
      const Json frame = parse_json(**text);
      if (!frame.is_object())
        return Error{Code::Failed, format("{} sent a message that is no JSON object", settings_.url.origin()),
                     "is it a server of gimbal?"};
      if (frame.value("done", Json()) == Json(true)) {
        last_ = frame;
        break;
      }
      const std::string reasoning = text_at(frame, "reasoning"), answer = text_at(frame, "text");
      if (!cancelled) {
        go_on = sink(reasoning, answer) && go_on;
        reply.text += answer, reply.reasoning += reasoning;
      }
    }
    if (go_on) continue;
    if (!cancelled) {
      cancelled = now();
      if (auto ok = cancel(); !ok) return ok.error();
    } else if (now() - cancelled > kCancelSeconds) {
      socket_.reset();  // which cancels it, too
      break;
    }
  }
  if (cancelled) {
    reply.stopped = reply.text.empty() && reply.reasoning.empty();
    return reply;
  }
  if (const std::string why = text_at(last_, "error"); !why.empty())
    return Error{Code::Failed, format("the server says: {}", why), remedy_for(last_)};
  reply.stats = stats_of(last_);
  if (text_at(last_, "finish_reason") == "length")
    reply.after.push_back("(the answer was cut: it had all its tokens, -n, or the context is full)");
  return reply;
}

std::string SocketAnswers::explanation() const {
  const std::string model = text_at(last_, "model");
  return format("{}: {}\n  {}/v1/explain/{} has the kernel of each step, and why\n", settings_.url.origin(),
                model.empty() ? "no answer yet" : printable(model), settings_.url.origin(),
                model.empty() ? "MODEL" : printable(model));
}

}  // namespace gimbal
