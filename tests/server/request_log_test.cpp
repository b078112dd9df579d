// What operators read of requests: one line of the log and one count for each, when its answer has ended.
#include "server/api/request_log.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "server/api/request_counts.h"

namespace gimbal::test {
namespace {

using namespace api;

RequestRecord text_request() {
  RequestRecord r;
  r.id = "req-1", r.dialect = Dialect::Ollama, r.method = "POST", r.path = "/api/chat", r.peer = "10.0.0.7";
  r.route = "/api/chat", r.status = 200, r.model = "m", r.prompt_tokens = 12, r.generated_tokens = 34;
  r.first_token = 0.25, r.seconds = 1.5, r.end = "stop";
  return r;
}

std::string without_time(std::string line) { return line.erase(0, line.find(' ') + 1); }

TEST(LogLine, AsJson) {
  Json j = parse_json(log_line(text_request(), true));
  EXPECT_EQ(j["time"].get<std::string>().size(), std::string("2026-11-23T03:22:06.123Z").size());
  j.erase("time");
  EXPECT_EQ(j, (Json{{"request_id", "req-1"},
                     {"api", "ollama"},
                     {"peer", "10.0.0.7"},
                     {"method", "POST"},
                     {"path", "/api/chat"},
                     {"status", 200},
                     {"model", "m"},
                     {"prompt_tokens", 12},
                     {"generated_tokens", 34},
                     {"first_token_seconds", 0.25},
                     {"seconds", 1.5},
                     {"end", "stop"}}));
  RequestRecord r;
  r.notes = {"a", "b"}, r.why = "not told below 500", r.status = 499;
  j = parse_json(log_line(r, true));
  for (const char* absent :
       {"model", "prompt_tokens", "generated_tokens", "first_token_seconds", "why", "body"})
    EXPECT_FALSE(j.contains(absent)) << absent;
  EXPECT_EQ(j["notes"], (Json{"a", "b"}));
  EXPECT_EQ(j["api"], "openai");
  r.status = 500, r.body = "{\"a\": 1}", r.dialect = Dialect::Anthropic;
  r.prompt_tokens = r.generated_tokens = 0, r.first_token = 0;
  j = parse_json(log_line(r, true));
  EXPECT_EQ(j["why"], "not told below 500");
  EXPECT_EQ(j["body"], "{\"a\": 1}");
  EXPECT_EQ(j["api"], "anthropic");
  EXPECT_EQ(j["prompt_tokens"], 0);
  EXPECT_EQ(j["generated_tokens"], 0);
  EXPECT_EQ(j["first_token_seconds"], 0);
  r.dialect = Dialect::WebSocket;
  EXPECT_EQ(parse_json(log_line(r, true))["api"], "websocket");
}

TEST(LogLine, AsText) {
  EXPECT_EQ(without_time(log_line(text_request(), false)),
            "req-1 POST /api/chat 200 m 12+34 tokens, first after 0.250 s 1.500 s stop\n");
  RequestRecord r;
  r.id = "req-2", r.status = 400, r.end = "refused", r.why = "not told";
  EXPECT_EQ(without_time(log_line(r, false)), "req-2 - - 400 0.000 s refused\n");
  r.status = 500, r.why = "no\nmemory", r.notes = {"one\x1b[2J", "two"}, r.body = "{\n}", r.end = "failed";
  EXPECT_EQ(without_time(log_line(r, false)),
            "req-2 - - 500 0.000 s failed: no\\x0amemory; note: one\\x1b[2J; note: two {\\x0a}\n");
  EXPECT_TRUE(log_line("a note").starts_with("{\"time\":\"20"));
  EXPECT_TRUE(log_line("a \"note\"").ends_with(",\"message\":\"a \\\"note\\\"\"}\n"));
}

// For any request: lines of several processes in one pipe stay whole below 4096 bytes.
TEST(LogLine, HasAtMost4000BytesWhateverWasSent) {
  for (const std::string& piece : {std::string("x"), std::string(1, '\x01'), std::string("\""),
                                   std::string("\xff"), std::string("\xe2\x82\xac")}) {
    std::string text;
    while (text.size() < 9000) text += piece;
    RequestRecord r = text_request();
    r.method = r.path = r.why = r.body = text, r.status = 500;
    r.notes = std::vector<std::string>(500, text);
    for (const bool json : {true, false}) {
      SCOPED_TRACE(testing::Message() << escaped(piece) << " json " << json);
      const std::string line = log_line(r, json);
      EXPECT_LE(line.size(), 4000u);
      EXPECT_GE(line.size(), 1500u) << "as much of it as there is room for";
      EXPECT_EQ(line.find('\n'), line.size() - 1);
      EXPECT_TRUE(is_utf8(line));
      EXPECT_EQ(line.find("\xef\xbf\xbd") != line.npos, json && piece == "\xff") << "no character is cut";
      if (json) {
        EXPECT_TRUE(parse_json(line).is_object());
        EXPECT_EQ(parse_json(line)["request_id"], "req-1");
      }
    }
  }
}

TEST(LogLine, TextsThatFitAreWholeAndOthersEndWithDots) {
  RequestRecord r;
  r.method = std::string(40, 'm'), r.path = std::string(200, 'p'), r.body = std::string(2000, 'b');
  r.status = 500, r.why = std::string(400, 'w'), r.notes = {std::string(300, 'n')};
  Json j = parse_json(log_line(r, true));
  EXPECT_EQ(j["method"], r.method);
  EXPECT_EQ(j["path"], r.path);
  EXPECT_EQ(j["body"], r.body);
  EXPECT_EQ(j["why"], r.why);
  EXPECT_EQ(j["notes"][0], r.notes[0]);
  const std::string text = log_line(r, false);
  for (const std::string& whole : {r.method, r.path, r.body, r.why, r.notes[0]})
    EXPECT_NE(text.find(whole), std::string::npos) << whole;
  EXPECT_EQ(text.find("..."), std::string::npos);
  r.method += 'm', r.path += 'p', r.body += 'b', r.why += 'w', r.notes[0] += 'n';
  j = parse_json(log_line(r, true));
  EXPECT_EQ(j["method"], std::string(40, 'm') + "...");
  EXPECT_EQ(j["path"], std::string(200, 'p') + "...");
  EXPECT_EQ(j["body"], std::string(2000, 'b') + "...");
  EXPECT_EQ(j["why"], std::string(400, 'w') + "...");
  EXPECT_EQ(j["notes"][0], std::string(300, 'n') + "...");
}

http::Response status_only(int status) {
  http::Response r;
  r.status = status;
  return r;
}

// An exchange that records the reply.
class Kept final : public http::Exchange {
 public:
  void answer(http::Response r) override { status = r.status; }
  void stream(std::shared_ptr<http::Source> s) override { source = std::move(s); }
  void open(http::Response head, std::shared_ptr<http::Messages>) override { status = head.status; }
  void wake() override { wakes++; }
  int status = 0, wakes = 0;
  std::shared_ptr<http::Source> source;
};

class Scripted final : public http::Source {
 public:
  explicit Scripted(std::vector<http::Outgoing> steps) : steps_(std::move(steps)) {}
  void pull(http::Outgoing& out) override { out = steps_.at(next_++); }
  void gone() override { left = true; }
  bool left = false;

 private:
  std::vector<http::Outgoing> steps_;
  size_t next_ = 0;
};

class LoggedExchanges : public testing::Test {
 protected:
  LoggedExchanges() {
    log_.tell = [this](const RequestRecord& r) { told_.push_back(r); };
    record_->begin = now() - 5, record_->route = "/r", record_->method = "GET";
  }
  std::string counted() const {
    std::string out;
    counts_.write(out);
    return out;
  }

  std::vector<RequestRecord> told_;
  RequestLog log_;
  RequestCounts counts_;
  std::shared_ptr<RequestRecord> record_ = std::make_shared<RequestRecord>();
  std::shared_ptr<Kept> inner_ = std::make_shared<Kept>();
  std::shared_ptr<http::Exchange> logged_ = logged(log_, counts_, record_, inner_);
};

TEST_F(LoggedExchanges, AnAnswer) {
  for (const auto& [status, end] :
       {std::pair(200, "done"), {399, "done"}, {400, "refused"}, {499, "refused"}, {500, "failed"}}) {
    told_.clear();
    record_->end.clear();
    logged(log_, counts_, record_, inner_)->answer(status_only(status));
    EXPECT_EQ(inner_->status, status);
    ASSERT_EQ(told_.size(), 1u);
    EXPECT_EQ(told_[0].status, status);
    EXPECT_EQ(told_[0].end, end);
    EXPECT_GE(told_[0].seconds, 5);
    EXPECT_LT(told_[0].seconds, 5 + 60);
  }
  record_->end = "length";
  logged_->answer(status_only(200));
  EXPECT_EQ(told_.back().end, "length") << "the first end is kept";
  logged_->wake();
  EXPECT_EQ(inner_->wakes, 1);
}

TEST_F(LoggedExchanges, ASocketThatIsOpened) {
  logged_->open(status_only(101), nullptr);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].status, 101);
  EXPECT_EQ(inner_->status, 101);
}

TEST_F(LoggedExchanges, AStreamIsToldOnceAtItsEnd) {
  const auto source = std::make_shared<Scripted>(std::vector<http::Outgoing>{
      {{}, status_only(206), "a", false}, {{}, {}, "b", false}, {{}, {}, "c", true}});
  logged_->stream(source);
  http::Outgoing out;
  for (int i = 0; i < 2; i++) {
    inner_->source->pull(out);
    EXPECT_TRUE(told_.empty());
  }
  inner_->source->pull(out);
  EXPECT_EQ(out.bytes, "c");
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].status, 206);
  EXPECT_EQ(told_[0].end, "done");
  inner_->source->gone();
  EXPECT_TRUE(source->left);
  EXPECT_EQ(told_.size(), 1u);
  EXPECT_NE(
      counted().find("gimbal_http_requests_total{path=\"/r\",method=\"GET\",status=\"206\",model=\"\"} 1\n"),
      std::string::npos)
      << counted();
}

TEST_F(LoggedExchanges, AStreamThatIsAWholeAnswer) {
  logged_->stream(std::make_shared<Scripted>(std::vector<http::Outgoing>{{status_only(503), {}, "", false}}));
  http::Outgoing out;
  inner_->source->pull(out);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].status, 503);
  EXPECT_EQ(told_[0].end, "failed");
}

TEST_F(LoggedExchanges, AClientThatLeaves) {
  log_.tell = nullptr;  // counted, whether or not anything is logged
  logged_->stream(std::make_shared<Scripted>(std::vector<http::Outgoing>{}));
  inner_->source->gone();
  EXPECT_EQ(record_->end, "client-left");
  EXPECT_NE(counted().find("gimbal_requests_left_total{model=\"\"} 1\n"), std::string::npos) << counted();
}

// The text that Prometheus reads, as its documentation of the format has it.
TEST(Counts, AsPrometheusReadsThem) {
  RequestCounts counts;
  std::string none;
  counts.write(none);
  EXPECT_NE(none.find("gimbal_requests_failed_total{model=\"\"} 0\n"), std::string::npos) << none;
  RequestRecord r;
  r.route = "/v1/x", r.method = "POST", r.status = 200, r.model = "a\"b", r.seconds = 0.5;
  counts.add(r), counts.add(r);
  r.seconds = 100;
  counts.add(r);
  r.model.clear(), r.method = "BREW", r.status = 404, r.route = "other";
  counts.add(r);
  for (const int status : {429, 503, 500, 504}) r.status = status, counts.add(r);
  r.status = 200, r.broke_off = true;
  counts.add(r);
  r.status = 503;  // refused, and nothing else
  counts.add(r);
  std::string out;
  counts.write(out);
  EXPECT_EQ(out.substr(0, out.find("# HELP gimbal_request_seconds")),
            R"(# HELP gimbal_http_requests_total Requests that have ended, by route, method, status and model.
# TYPE gimbal_http_requests_total counter
gimbal_http_requests_total{path="/v1/x",method="POST",status="200",model="a\"b"} 3
gimbal_http_requests_total{path="other",method="other",status="200",model=""} 1
gimbal_http_requests_total{path="other",method="other",status="404",model=""} 1
gimbal_http_requests_total{path="other",method="other",status="429",model=""} 1
gimbal_http_requests_total{path="other",method="other",status="500",model=""} 1
gimbal_http_requests_total{path="other",method="other",status="503",model=""} 2
gimbal_http_requests_total{path="other",method="other",status="504",model=""} 1
# HELP gimbal_requests_refused_total Requests with status 429 or 503: the server could not take them then.
# TYPE gimbal_requests_refused_total counter
gimbal_requests_refused_total{model=""} 3
gimbal_requests_refused_total{model="a\"b"} 0
# HELP gimbal_requests_failed_total Requests with another status of 500 or more, and streams that broke off.
# TYPE gimbal_requests_failed_total counter
gimbal_requests_failed_total{model=""} 3
gimbal_requests_failed_total{model="a\"b"} 0
# HELP gimbal_requests_left_total Requests whose clients left before the end.
# TYPE gimbal_requests_left_total counter
gimbal_requests_left_total{model=""} 0
gimbal_requests_left_total{model="a\"b"} 0
)");
  const std::string seconds = out.substr(out.find("# TYPE gimbal_request_seconds"));
  for (const char* line :
       {"_bucket{model=\"a\\\"b\",le=\"0.2\"} 0\n", "_bucket{model=\"a\\\"b\",le=\"0.5\"} 2\n",
        "_bucket{model=\"a\\\"b\",le=\"60\"} 2\n", "_bucket{model=\"a\\\"b\",le=\"+Inf\"} 3\n",
        "_sum{model=\"a\\\"b\"} 101\n", "_count{model=\"a\\\"b\"} 3\n"})
    EXPECT_NE(seconds.find(std::string("gimbal_request_seconds") + line), std::string::npos)
        << line << seconds;
  EXPECT_EQ(seconds.find("model=\"\""), std::string::npos) << "requests of no model are no answers";
  std::string alone;
  add_histogram(alone, "h", "", Durations{});
  EXPECT_TRUE(alone.starts_with("h_bucket{le=\"0.001\"} 0\n")) << alone;
  EXPECT_TRUE(alone.ends_with("h_bucket{le=\"+Inf\"} 0\nh_sum 0\nh_count 0\n")) << alone;
}

}  // namespace
}  // namespace gimbal::test
