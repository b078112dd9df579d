// More than a thousand bad requests, made of tables and seeds: each is answered with its
// status, in the form of the API whose path it names, and tells nothing about the server.
#include <map>
#include <random>

#include "base/format.h"
#include "server/api_server.h"

namespace gimbal::test {
namespace {

class Hostile : public ApiTest {
 protected:
  void TearDown() override {
    // After all of it, the server answers as ever.
    EXPECT_EQ(ask(get("/health/ready")).status, 200);
    stop();
  }

  // An error of this status, in the form of this path's API ("" where there is no path).
  void expect_error(const HttpAnswer& a, int status, const std::string& path, const std::string& what) {
    asked_++;
    EXPECT_EQ(a.status, status) << what << "\n" << a.body;
    const Json j = Json::parse(a.body, nullptr, false);
    ASSERT_TRUE(j.is_object()) << what << "\n" << a.body;
    std::string message;
    if (path.starts_with("/api/")) {
      EXPECT_EQ(j.size(), 1u) << a.body;
      message = j.value("error", "");
    } else if (path == "/v1/messages" || path.starts_with("/v1/messages/")) {
      EXPECT_EQ(j.value("type", ""), "error") << a.body;
      message = j["error"].value("message", "");
      EXPECT_FALSE(j["error"].value("type", "").empty()) << a.body;
      EXPECT_TRUE(a.headers.contains("request-id")) << what;
    } else {
      for (const char* name : {"message", "type", "param", "code"})
        EXPECT_TRUE(j["error"].contains(name)) << a.body;
      message = j["error"].value("message", "");
      EXPECT_TRUE(a.headers.contains("x-request-id")) << what;
    }
    EXPECT_FALSE(message.empty()) << what << "\n" << a.body;
    expect_no_secret(a, what);
  }
  static void expect_no_secret(const HttpAnswer& a, const std::string& what) {
    for (const char* secret : {"/work", "/home", "/tmp", "/usr", "src/", ".cpp", ".h:", "nlohmann",
                               "json.exception", "std::", "0x7f", "a/path/of/ours"})
      EXPECT_FALSE(a.body.find(secret) != std::string::npos) << secret << " in " << a.body << what;
  }

  size_t asked_ = 0;
};

struct Endpoint {
  std::string path;
  Json valid;  // is answered with 200
  // Each field and the kinds of values that it takes: n number, i whole number, t text, f true or false,
  // o object, l list, x nothing but null.
  std::map<std::string, std::string> fields;
};

const std::map<std::string, std::string> kSampling = {{"temperature", "n"},
                                                      {"top_p", "n"},
                                                      {"frequency_penalty", "n"},
                                                      {"presence_penalty", "n"},
                                                      {"top_k", "i"},
                                                      {"min_p", "n"},
                                                      {"typical_p", "n"},
                                                      {"repeat_penalty", "n"},
                                                      {"seed", "i"},
                                                      {"logit_bias", "o"},
                                                      {"stop", "tl"},
                                                      {"n", "i"},
                                                      {"ignore_eos", "f"},
                                                      {"repetition_penalty", "n"},
                                                      {"grammar", "t"}};

std::map<std::string, std::string> and_sampling(std::map<std::string, std::string> fields) {
  fields.insert(kSampling.begin(), kSampling.end());
  return fields;
}

const std::vector<Endpoint>& endpoints() {
  static const Json messages = Json::array({{{"role", "user"}, {"content", "Hi"}}});
  static const std::vector<Endpoint> all = {
      {"/v1/chat/completions",
       {{"model", "stories"}, {"messages", messages}, {"max_tokens", 3}},
       and_sampling({{"model", "t"},
                     {"messages", "l"},
                     {"max_tokens", "i"},
                     {"max_completion_tokens", "i"},
                     {"stream", "f"},
                     {"stream_options", "o"},
                     {"logprobs", "f"},
                     {"top_logprobs", "i"},
                     {"tools", "l"},
                     {"parallel_tool_calls", "f"},
                     {"reasoning_effort", "t"},
                     {"response_format", "o"},
                     {"chat_template_kwargs", "o"},
                     {"store", "f"},
                     {"service_tier", "t"},
                     {"audio", "x"},
                     {"functions", "x"}})},
      {"/v1/completions",
       {{"model", "stories"}, {"prompt", "Hi"}, {"max_tokens", 3}},
       and_sampling({{"model", "t"},
                     {"prompt", "tl"},
                     {"max_tokens", "i"},
                     {"stream", "f"},
                     {"logprobs", "i"},
                     {"echo", "f"},
                     {"best_of", "i"},
                     {"suffix", "x"}})},
      {"/v1/embeddings",
       {{"model", "stories"}, {"input", "Hi"}},
       {{"model", "t"}, {"input", "tl"}, {"encoding_format", "t"}, {"dimensions", "i"}}},
      {"/v1/rerank",
       {{"model", "stories"}, {"query", "Hi"}, {"documents", {"a", "b"}}},
       {{"model", "t"}, {"query", "t"}, {"documents", "l"}, {"top_n", "i"}, {"return_documents", "f"}}},
      {"/v1/responses",
       {{"model", "stories"}, {"input", "Hi"}, {"max_output_tokens", 3}},
       {{"model", "t"},
        {"input", "tl"},
        {"instructions", "t"},
        {"max_output_tokens", "i"},
        {"temperature", "n"},
        {"top_p", "n"},
        {"stream", "f"},
        {"tools", "l"},
        {"reasoning", "o"},
        {"text", "o"},
        {"truncation", "t"},
        {"background", "f"},
        {"conversation", "x"}}},
      {"/v1/messages",
       {{"model", "stories"}, {"messages", messages}, {"max_tokens", 3}},
       {{"model", "t"},
        {"messages", "l"},
        {"max_tokens", "i"},
        {"temperature", "n"},
        {"top_p", "n"},
        {"top_k", "i"},
        {"stop_sequences", "tl"},
        {"stream", "f"},
        {"system", "tl"},
        {"tools", "l"},
        {"tool_choice", "o"},
        {"thinking", "o"},
        {"mcp_servers", "x"}}},
      {"/v1/messages/count_tokens",
       {{"model", "stories"}, {"messages", messages}},
       {{"model", "t"}, {"messages", "l"}, {"system", "tl"}, {"tools", "l"}}},
      {"/api/generate",
       {{"model", "stories"}, {"prompt", "Hi"}, {"stream", false}},
       {{"model", "t"}, {"prompt", "t"}, {"system", "t"}, {"raw", "f"}, {"stream", "f"}, {"options", "o"}}},
      {"/api/chat",
       {{"model", "stories"}, {"messages", messages}, {"stream", false}},
       {{"model", "t"}, {"messages", "l"}, {"stream", "f"}, {"tools", "l"}, {"options", "o"}}},
      {"/api/embed", {{"model", "stories"}, {"input", "Hi"}}, {{"model", "t"}, {"input", "tl"}}},
      {"/api/show", {{"model", "stories"}}, {{"model", "t"}, {"verbose", "f"}}},
      {"/completion",
       {{"model", "stories"}, {"prompt", "Hi"}, {"n_predict", 3}},
       {{"model", "t"},
        {"n_predict", "i"},
        {"n_probs", "i"},
        {"n_indent", "i"},
        {"temperature", "n"},
        {"top_k", "i"},
        {"repeat_last_n", "i"},
        {"seed", "i"},
        {"stream", "f"},
        {"return_tokens", "f"},
        {"cache_prompt", "f"},
        {"grammar", "t"},
        {"stop", "tl"},
        {"mirostat", "i"},
        {"response_fields", "t"}}},
      {"/tokenize",
       {{"model", "stories"}, {"content", "Hi"}},
       {{"content", "t"}, {"add_special", "f"}, {"with_pieces", "f"}}},
      {"/detokenize", {{"model", "stories"}, {"tokens", {5, 6}}}, {{"tokens", "l"}}},
      {"/apply-template",
       {{"model", "stories"}, {"messages", messages}},
       {{"messages", "l"}, {"add_generation_prompt", "f"}}},
      {"/embedding", {{"model", "stories"}, {"content", "Hi"}}, {{"content", "tl"}, {"embd_normalize", "i"}}},
      {"/v1/jobs",
       {{"model", "stories"}, {"prompt", "Hi"}, {"max_tokens", 3}},
       {{"model", "t"}, {"prompt", "t"}, {"max_tokens", "i"}, {"stream", "f"}, {"temperature", "n"}}},
  };
  return all;
}

TEST_F(Hostile, EveryKnownFieldWithEveryWrongType) {
  const std::vector<std::pair<char, Json>> values = {{'i', -987654321012},
                                                     {'n', 0.5},
                                                     {'n', -1e300},
                                                     {'t', "a text \xc3\xa9"},
                                                     {'f', true},
                                                     {'o', Json::object({{"a", 1}})},
                                                     {'l', Json::array({1, "b", false})}};
  for (const Endpoint& e : endpoints()) {
    HttpClient c(server->port());
    const auto with = [&](const std::string& field, const Json& value) {
      Json body = e.valid;
      body[field] = value;
      return c.ask(post(e.path, body.dump()));
    };
    EXPECT_EQ(with("model", "stories").status, 200) << e.path;
    for (const auto& [field, kinds] : e.fields)
      for (const auto& [kind, value] : values) {
        // A number that is out of range, or of the right kind with the wrong content, is wrong, too; what may
        // be right is not asked.
        const bool right = kinds.find(kind) != kinds.npos || (kind == 'i' && kinds == "n");
        const bool never =
            (kind == 'i' && field != "seed") || value == Json(-1e300) || (kind == 'n' && kinds == "i") ||
            (kind == 'o' && field != "logit_bias" && field != "options" && field != "chat_template_kwargs") ||
            (kind == 'l' && field != "stop");
        if (right && !never) continue;
        const std::string what = format("{} {} = {}", e.path, field, value.dump());
        const HttpAnswer a = with(field, value);
        expect_error(a, 400, e.path, what);
        if (e.path.starts_with("/v1/") && !e.path.starts_with("/v1/messages")) {
          const std::string param = Json::parse(a.body)["error"]["param"].dump();
          EXPECT_TRUE(param.starts_with("\"" + field)) << what << " is said of " << param;
        }
      }
  }
  EXPECT_GT(asked_, 500u);
}

TEST_F(Hostile, BodiesThatAreNoObjectOfJson) {
  std::mt19937 random(7);
  for (const Endpoint& e : endpoints()) {
    HttpClient c(server->port());
    const std::string whole = e.valid.dump();
    std::vector<std::string> bodies = {"",
                                       "null",
                                       "[]",
                                       "\"text\"",
                                       "7",
                                       "{",
                                       "}",
                                       "{\"a\"}",
                                       "{\"a\":}",
                                       "{\"a\":1,}",
                                       "{'a':1}",
                                       "{\"a\":NaN}",
                                       "{\"a\":1e999}",
                                       whole + "x",
                                       whole + whole,
                                       "\xef\xbb\xbf\xef\xbb\xbf" + whole,
                                       "// a comment\n" + whole,
                                       std::string("\0{}", 3)};
    bodies.push_back("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}");
    bodies.push_back("{\"a\":" + std::string(201, '[') + std::string(201, ']') + "}");
    std::string deep = "1";
    for (int i = 0; i < 300; i++) deep = "{\"a\":" + deep + "}";
    bodies.push_back(deep);
    for (int i = 0; i < 8; i++) {
      bodies.push_back(whole.substr(0, 1 + random() % (whole.size() - 1)));
      // A byte that is no UTF-8 in a text.
      std::string broken = whole;
      static const std::vector<std::string> bytes = {
          "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"};
      broken.insert(broken.find("stories") + random() % 7, bytes[random() % bytes.size()]);
      bodies.push_back(broken);
      std::string control = whole;
      control.insert(control.find("stories") + random() % 7, 1, char(random() % 32));
      bodies.push_back(control);
    }
    for (const std::string& body : bodies)
      expect_error(c.ask(post(e.path, body)), 400, e.path, e.path + body.substr(0, 300));
    // A name that the API does not have.
    for (int i = 0; i < 4; i++) {
      Json body = e.valid;
      std::string name;
      for (int k = 0; k < 8; k++) name += char('a' + random() % 26);
      body[name] = 1;
      const HttpAnswer a = c.ask(post(e.path, body.dump()));
      expect_error(a, 400, e.path, name);
      EXPECT_TRUE(a.body.find(name) != std::string::npos) << a.body;
    }
  }
  EXPECT_GT(asked_, 400u);
}

TEST_F(Hostile, ObjectsWithVeryManyMembers) {
  std::string many = "{\"model\":\"stories\"";
  for (int i = 0; i < 200000; i++) many += format(",\"k{}\":1", i);
  std::string objects = "{\"model\":\"stories\",\"messages\":[";
  for (int i = 0; i < 1000; i++) {
    objects += i ? ",{" : "{";
    for (int k = 0; k < 500; k++) objects += format("{}\"k{}\":1", k ? "," : "", k);
    objects += "}";
  }
  for (const Endpoint& e : endpoints()) {
    expect_error(ask(post(e.path, many + "}")), 400, e.path, "200000 members");
    expect_error(ask(post(e.path, objects + "]}")), 400, e.path, "1000 objects of 500 members");
  }
  // As many as a client may have reason for.
  Json bias = Json::object();
  for (int i = 0; i < 500; i++) bias[std::to_string(i)] = 1;
  EXPECT_EQ(
      ask("/v1/completions", {{"model", "stories"}, {"prompt", "a"}, {"max_tokens", 1}, {"logit_bias", bias}})
          .status,
      200);
}

TEST_F(Hostile, MethodsPathsAndTypes) {
  HttpClient c(server->port());
  const auto line = [](const std::string& method, const std::string& path) {
    return method + " " + path + " HTTP/1.1\r\nHost: x\r\n";
  };
  std::vector<std::string> gets = {"/v1/models", "/metrics",     "/v1/backends", "/v1/models/x", "/api/tags",
                                   "/api/ps",    "/api/version", "/health/live", "/health/ready"};
  for (const std::string method : {"PUT", "PATCH", "DELETE", "TRACE", "BREW", "get", "OPTIONS", "CONNECT"}) {
    for (const Endpoint& e : endpoints()) {
      const HttpAnswer a = c.ask(line(method, e.path) + "\r\n");
      expect_error(a, 405, e.path, method + e.path);
      EXPECT_TRUE(a.headers.contains("allow") && a.headers.at("allow").starts_with("POST"))
          << method << e.path;
    }
    for (const std::string& path : gets) {
      const HttpAnswer a = c.ask(line(method, path) + "\r\n");
      expect_error(a, 405, path, method + path);
      EXPECT_EQ(a.headers.at("allow"), "GET, HEAD") << path;
    }
  }
  for (const std::string path : {"/v1",
                                 "/v1/",
                                 "/v2/models",
                                 "/v1/Models",
                                 "/v1/models/",
                                 "/v1//models",
                                 "/v1/models/../../etc/passwd",
                                 "/%2e%2e/etc/passwd",
                                 "/etc/passwd",
                                 "/v1/receipts/x",
                                 "/v1/jobs/x",
                                 "/api/blobs/x",
                                 "/index.php",
                                 "/.git/config",
                                 "/v1/models/%00x",
                                 "/v1/models/%ff%fe",
                                 "/v1/models/..%2f..%2fetc%2fpasswd",
                                 "/v1/chat/completions/",
                                 "//",
                                 "/*"}) {
    const bool zero = std::string(path).find("%00") != std::string::npos;
    HttpClient one(server->port());  // a %00 ends the connection
    expect_error(one.ask(get(path)), zero ? 400 : 404, path, path);
  }
  for (const Endpoint& e : endpoints()) {
    const std::string body = e.valid.dump();
    for (const std::string type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonp", "",
                                   "multipart/form-data"}) {
      const HttpAnswer a =
          c.ask(line("POST", e.path) + (type.empty() ? "" : "Content-Type: " + type + "\r\n") +
                format("Content-Length: {}\r\n\r\n{}", body.size(), body));
      if (e.path.starts_with("/api/")) {
        EXPECT_EQ(a.status, 200) << e.path << a.body;
      } else {
        expect_error(a, 415, e.path, e.path + type);
      }
    }
    Json other = e.valid;
    models.second = "another";  // with one model, any name would do
    for (const std::string name :
         {"nobody", "../stories", "/etc/passwd", "stories\n", "STORIES", "", "stories.gguf"}) {
      other["model"] = name;
      expect_error(c.ask(post(e.path, other.dump())), 404, e.path, name);
    }
    models.second.clear();
  }
}

TEST_F(Hostile, FramingThatTwoReadersReadDifferently) {
  std::mt19937 random(3);
  const std::string hidden = post("/v1/completions", "{}");
  for (const Endpoint& e : endpoints()) {
    const std::string body = e.valid.dump(), n = std::to_string(body.size());
    const std::string first = "POST " + e.path + " HTTP/1.1\r\n", type = "Content-Type: application/json\r\n";
    const std::string head = first + "Host: x\r\n" + type;
    const std::string chunks = format("{:x}\r\n{}\r\n0\r\n\r\n", body.size(), body);
    struct Case {
      int status;
      std::string bytes;
      bool knows_path = true;
    };
    const std::vector<Case> cases = {
        {400, first + type + "Content-Length: " + n + "\r\n\r\n" + body},
        {400, head + "Host: y\r\nContent-Length: " + n + "\r\n\r\n" + body},
        {400, head + "Content-Length: " + n + "\r\nContent-Length: " + n + "\r\n\r\n" + body},
        {400, head + "Content-Length: " + n + "\r\nContent-Length: 0\r\n\r\n" + body},
        {400, head + "Content-Length: " + n + "\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks},
        {400, head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunks},
        {400, head + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunks},
        {400, head + "Transfer-Encoding: identity\r\n\r\n" + chunks},
        {400, head +
                  "Transfer-Encoding:\x0b"
                  "chunked\r\n\r\n" +
                  chunks},
        {400, head + "Transfer-Encoding : chunked\r\n\r\n" + chunks},
        {400, head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n" + chunks},
        {400, head + "Content-Length: 0x" + n + "\r\n\r\n" + body},
        {400, head + "Content-Length: +" + n + "\r\n\r\n" + body},
        {400, head + "Content-Length: " + n + " " + n + "\r\n\r\n" + body},
        {400, head + "Content-Length: 18446744073709551617\r\n\r\n" + body},
        {400, head + "Content-Length: \r\n\r\n" + body},
        {400, head + "X: a\r\n b\r\nContent-Length: " + n + "\r\n\r\n" + body},
        {400, head + "X: a\rContent-Length: " + n + "\r\n\r\n" + body},
        {400, head + std::string("X: a\0b\r\n", 8) + "Content-Length: " + n + "\r\n\r\n" + body},
        {400, head + ": x\r\nContent-Length: " + n + "\r\n\r\n" + body},
        {400, head + "no colon\r\nContent-Length: " + n + "\r\n\r\n" + body},
        {400, head + "X: a\nContent-Length: " + n + "\r\n\r\n" + body, false},
        {400, "POST " + e.path + " HTTP/1.1\nHost: x\n\n", false},
        {400, "POST " + e.path + "\r\nHost: x\r\n\r\n", false},
        {400, "POST\t" + e.path + " HTTP/1.1\r\nHost: x\r\n\r\n", false},
        {400, "P(ST " + e.path + " HTTP/1.1\r\nHost: x\r\n\r\n", false},
        {400, head + "Transfer-Encoding: chunked\r\n\r\n" + "0" + n + "z\r\n" + body},
        {400, head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n"},
        {400, head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n"},
        {400, head + "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n"},
        {400, head + "Transfer-Encoding: chunked\r\n\r\n2;" + std::string(300, 'x') + "\r\n{}\r\n0\r\n\r\n"},
        {413, head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n"},
        {413, head + "Content-Length: 99999999999999999\r\n\r\n"},
        {417, head + "Expect: a-pony\r\nContent-Length: " + n + "\r\n\r\n" + body},
        {431, head + "X: " + std::string(20000, 'x') + "\r\n\r\n", false},
        {505, "POST " + e.path + " HTTP/2.0\r\nHost: x\r\n\r\n", false},
        {505, "POST " + e.path + " HTTP/0.9\r\nHost: x\r\n\r\n", false},
    };
    for (const Case& one : cases) {
      HttpClient c(server->port());
      // In one piece, or in two, somewhere; and another request behind it, which must not be answered.
      const std::string bytes = one.bytes + hidden;
      const size_t cut = random() % bytes.size();
      c.send(bytes.substr(0, cut));
      c.send(bytes.substr(cut));
      expect_error(c.answer(), one.status, one.knows_path ? e.path : "", one.bytes.substr(0, 400));
      EXPECT_TRUE(c.closed()) << one.bytes.substr(0, 400);
    }
    // What is right is answered, whatever it is cut into, and however much of it comes at once.
    std::string twice = head + "Transfer-Encoding: chunked\r\n\r\n" + chunks;
    twice += head + "Content-Length: " + n + "\r\n\r\n" + body;
    HttpClient c(server->port());
    for (size_t at = 0; at < twice.size(); at += 7) c.send(twice.substr(at, 7));
    EXPECT_EQ(c.answer().status, 200) << e.path;
    EXPECT_EQ(c.answer().status, 200) << e.path;
    EXPECT_EQ(c.ask(head + "Expect: 100-continue\r\nContent-Length: " + n + "\r\n\r\n").status, 100);
    EXPECT_EQ(c.ask(body).status, 200) << e.path;
  }
  EXPECT_GT(asked_, 400u);
}

}  // namespace
}  // namespace gimbal::test
