#include "server/api/request_log.h"

#include <algorithm>

#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "server/api/request_counts.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr size_t kMostOfABody = 2000;  // bytes
constexpr size_t kMostOfALine = 4000;
constexpr size_t kMostOfANote = 300, kMostNotes = 10;

// A record in progress; logged by the first thread that sees the end.
class Ending {
 public:
  Ending(const RequestLog& log, RequestCounts& counts, std::shared_ptr<RequestRecord> record)
      : log_(log), counts_(counts), record_(std::move(record)) {}
  void status(int s) { record_->status = s; }
  void tell(const char* end) {
    if (std::exchange(told_, true)) return;
    RequestRecord& r = *record_;
    if (r.end.empty()) r.end = end ? end : r.status < 400 ? "done" : r.status < 500 ? "refused" : "failed";
    r.seconds = now() - r.begin;
    counts_.add(r);
    if (log_.tell) log_.tell(r);
  }

 private:
  const RequestLog& log_;
  RequestCounts& counts_;
  std::shared_ptr<RequestRecord> record_;
  bool told_ = false;
};

class LoggedSource final : public http::Source {
 public:
  LoggedSource(std::shared_ptr<http::Source> inner, Ending ending)
      : inner_(std::move(inner)), ending_(std::move(ending)) {}
  void pull(http::Outgoing& out) override {
    inner_->pull(out);
    if (out.head) ending_.status(out.head->status);
    if (out.whole) ending_.status(out.whole->status);
    if (out.whole || out.end) ending_.tell(nullptr);
  }
  void gone() override {
    inner_->gone();
    ending_.tell("client-left");
  }

 private:
  std::shared_ptr<http::Source> inner_;
  Ending ending_;
};

class LoggedExchange final : public http::Exchange {
 public:
  LoggedExchange(std::shared_ptr<http::Exchange> inner, Ending ending)
      : inner_(std::move(inner)), ending_(std::move(ending)) {}
  void answer(http::Response r) override {
    ending_.status(r.status);
    ending_.tell(nullptr);
    inner_->answer(std::move(r));
  }
  void stream(std::shared_ptr<http::Source> s) override {
    inner_->stream(std::make_shared<LoggedSource>(std::move(s), ending_));
  }
  // Its messages have records of their own.
  void open(http::Response head, std::shared_ptr<http::Messages> messages) override {
    ending_.status(head.status);
    ending_.tell(nullptr);
    inner_->open(std::move(head), std::move(messages));
  }
  void wake() override { inner_->wake(); }

 private:
  std::shared_ptr<http::Exchange> inner_;
  Ending ending_;
};

const char* name_of(Dialect d) {
  switch (d) {
    case Dialect::Ollama: return "ollama";
    case Dialect::Anthropic: return "anthropic";
    case Dialect::WebSocket: return "websocket";
    case Dialect::OpenAi: break;
  }
  return "openai";
}

// The beginning of a text, without a part of a character at its end.
std::string cut(std::string text, size_t most) {
  if (text.size() <= most) return text;
  for (int i = 0; i < 3 && most > 0 && (uint8_t(text[most]) & 0xc0) == 0x80; i++) most--;
  text.resize(most);
  return text += "...";
}

// `most`: bytes of each text in it.
Json json_of(const RequestRecord& r, size_t most) {
  const auto part = [&](const std::string& text, size_t usual) { return cut(text, std::min(usual, most)); };
  Json j = {{"time", time_text()}, {"request_id", r.id},           {"api", name_of(r.dialect)},
            {"peer", r.peer},      {"method", part(r.method, 40)}, {"path", part(r.path, 200)},
            {"status", r.status}};
  if (!r.model.empty()) j["model"] = r.model;
  if (r.prompt_tokens >= 0) j["prompt_tokens"] = r.prompt_tokens;
  if (r.generated_tokens >= 0) j["generated_tokens"] = r.generated_tokens;
  if (r.first_token >= 0) j["first_token_seconds"] = r.first_token;
  j["seconds"] = r.seconds;
  j["end"] = r.end;
  if (r.status >= 500 && !r.why.empty()) j["why"] = part(r.why, 400);
  for (size_t i = 0; i < std::min(r.notes.size(), kMostNotes); i++)
    j["notes"].push_back(part(r.notes[i], kMostOfANote));
  if (!r.body.empty()) j["body"] = part(r.body, kMostOfABody);
  return j;
}

std::string json_line(const RequestRecord& r) {
  // Escapes may make a text six times as long.
  for (size_t most = kMostOfABody;; most /= 2)
    if (std::string line = dump(json_of(r, most)); line.size() < kMostOfALine || most == 0)
      return line + "\n";
}

}  // namespace

std::shared_ptr<http::Exchange> logged(const RequestLog& log, RequestCounts& counts,
                                       std::shared_ptr<RequestRecord> record,
                                       std::shared_ptr<http::Exchange> inner) {
  return std::make_shared<LoggedExchange>(std::move(inner), Ending(log, counts, std::move(record)));
}

std::string log_line(const RequestRecord& r, bool json) {
  if (json) return json_line(r);
  std::string line =
      format("{} {} {} {} {}", time_text(), r.id, r.method.empty() ? "-" : escaped(cut(r.method, 40)),
             r.path.empty() ? "-" : escaped(cut(r.path, 200)), r.status);
  if (!r.model.empty()) line += format(" {}", escaped(r.model));
  if (r.prompt_tokens >= 0) line += format(" {}+{} tokens", r.prompt_tokens, r.generated_tokens);
  if (r.first_token >= 0) line += format(", first after {:.3f} s", r.first_token);
  line += format(" {:.3f} s {}", r.seconds, r.end);
  if (r.status >= 500 && !r.why.empty()) line += format(": {}", escaped(cut(r.why, 400)));
  for (size_t i = 0; i < std::min(r.notes.size(), kMostNotes); i++)
    line += format("; note: {}", escaped(cut(r.notes[i], kMostOfANote)));
  if (!r.body.empty()) line += " " + cut(escaped(cut(r.body, kMostOfABody)), kMostOfABody);
  return cut(std::move(line), kMostOfALine - 4) + "\n";
}

std::string log_line(const std::string& message) {
  return dump({{"time", time_text()}, {"message", message}}) + "\n";
}

}  // namespace gimbal::api
