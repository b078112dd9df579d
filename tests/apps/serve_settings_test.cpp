// Where the options of gimbal serve come from, and what it tells on stderr.
#include <fstream>

#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string config_file(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path) << text;
  return path;
}

int status_with(const Serving& s, const std::string& key) {
  return s.ask(get("/v1/models", "x-api-key: " + key + "\r\n")).status;
}

TEST(ServeSettings, WhatIsTypedThenTheEnvironmentThenTheFile) {
  const std::string file = config_file("serve.toml", R"(# options, by their names
model = [ "default",  # one
          ')" + story_file("q8_0") + R"(' ]
api-key = ["of the file", 'another "one"']
parallel = 3
host = 127.0.0.1   # without quotes, too
quiet = true
)");
  {
    const Serving s({"--config", file});
    const HttpAnswer models = s.ask(get("/v1/models", "x-api-key: of the file\r\n"));
    ASSERT_EQ(models.status, 200);
    EXPECT_EQ(Json::parse(models.body)["data"].size(), 2u);
    EXPECT_EQ(status_with(s, "another \"one\""), 200);
    EXPECT_EQ(status_with(s, "wrong"), 401);
  }
  {
    const Serving s({"default"}, {{"GIMBAL_CONFIG", file}, {"GIMBAL_API_KEY", "[\"from\", \"outside\"]"}});
    const HttpAnswer models = s.ask(get("/v1/models", "x-api-key: outside\r\n"));
    ASSERT_EQ(models.status, 200);
    EXPECT_EQ(Json::parse(models.body)["data"].size(), 1u);
    EXPECT_EQ(status_with(s, "of the file"), 401);
  }
  const Serving s({"--config", file, "--api-key", "typed"}, {{"GIMBAL_API_KEY", "from outside"}});
  EXPECT_EQ(status_with(s, "typed"), 200);
  EXPECT_EQ(status_with(s, "from outside"), 401);
}

TEST(ServeSettings, WhatAWorkerNeedsReachesIt) {
  const Serving s({"--config", config_file("context.toml", "ctx = 100\n")});
  const HttpAnswer a = s.ask(
      post("/v1/completions",
           Json{{"model", s.model}, {"prompt", "a"}, {"max_tokens", 400}, {"ignore_eos", true}}.dump()));
  const Json j = Json::parse(a.body);
  EXPECT_EQ(j["usage"]["total_tokens"], 101) << a.body;  // the last one needs no place
}

// A web site that leads its own name here (DNS rebinding) is no user of this machine.
TEST(ServeSettings, NamesThatTheServerHas) {
  const auto asked = [](const Serving& s, const std::string& host, const std::string& more = "") {
    return s.ask("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n").status;
  };
  {
    const Serving s;
    for (const std::string host : {"localhost", "127.0.0.1", "[::1]"})
      EXPECT_EQ(asked(s, host + ":" + std::to_string(s.port)), 200) << host;
    EXPECT_EQ(asked(s, "evil.example"), 403);
    EXPECT_EQ(asked(s, "localhost", "Origin: https://evil.example\r\n"), 403);
  }
  const Serving s({"--allow-host", "Chat.example", "--allow-host", "other"},
                  {{"GIMBAL_CORS_ORIGIN", "https://A.example"}});
  for (const char* host : {"chat.example:8080", "other", "localhost"}) EXPECT_EQ(asked(s, host), 200) << host;
  EXPECT_EQ(asked(s, "evil.example"), 403);
  EXPECT_EQ(asked(s, "other", "Origin: https://a.example\r\n"), 200);
  const Serving any({"--allow-host", "*"});
  EXPECT_EQ(asked(any, "evil.example"), 200);
  // Beyond this machine a key is needed, whatever the name.
  EXPECT_EQ(asked(Serving({"--host", "0.0.0.0"}), "any.example"), 401);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--allow-host", "http://chat.example"}, {"--cors-origin", "localhost"}}) {
    const Ran r = gimbal({"serve", wrong[0], wrong[1]});
    EXPECT_EQ(r.code, 2);
    EXPECT_SAYS(r.err, wrong[0] + ": ");
  }
}

TEST(ServeSettings, MistakesAreNamedWithTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"\n\nprot = 8080\n", "line 3: gimbal serve has no option 'prot'"},
      {"port = 8080\nport = 1\n", "line 2: 'port' stands in line 1 already"},
      {"backend = cpu\ngpu-backend = cpu\n", "line 2: 'gpu-backend' is the same as an option above"},
      {"[server]\nport = 1\n", "line 1: there are no tables here"},
      {"[model.]\nctx = 1\n", "line 1: the section names no model"},
      {"[model.a:b]\nctx = 1\n", "line 1: a name with other characters"},
      {"[model.a]\nctx = 1\nctx = 2\n", "line 3: 'ctx' stands in line 2 already"},
      {"[model.a]\nport = 1\n", "line 2: a section of a model has no option 'port'"},
      {"[model.a]\nctxx = 1\n", "line 2: a section of a model has no option 'ctxx'"},
      {"[model.a]\nctx = many\n", "line 2: --ctx must be a whole number"},
      {"[model.a]\nstrict = maybe\n", "line 2: strict must be true or false"},
      {"[model.a]\nlora = x\n", "line 2: lora is for all models"},
      {"model = default\n[model.a]\nctx = 100\n", "this server has no model of this name"},
      {"port 8080\n", "line 1: this is no NAME = VALUE"},
      {"port =\n", "line 1: 'port' has no value"},
      {"port = many\n", "line 1: port must be a whole number from 0 to 65535, not 'many'"},
      {"port = [1, 2]\n", "line 1: port takes one value"},
      {"strict = maybe\n", "line 1: strict must be true or false, not 'maybe'"},
      {"host = \"127.0.0.1\n", "line 1: the text of 'host' has no end"},
      {"host = \"a\" b\n", "line 1: there is more behind the value of 'host'"},
      {"host = \"\\q\"\n", "line 1: the text of 'host' has an unknown escape"},
      {"api-key = [\"a\"\n", "line 1: the list of 'api-key' has no end"},
      {"api-key = [\"a\" \"b\"]\n", "line 1: a comma or ] is missing in 'api-key'"},
      {"config = other.toml\n", "line 1: gimbal serve has no option 'config'"},
      {"help = true\n", "line 1: gimbal serve has no option 'help'"},
      {"host = \"\xff\"\n", "is no text in UTF-8"},
  };
  for (const auto& [text, said] : wrong) {
    const Ran r = gimbal({"serve", "--config", config_file("wrong.toml", text)});
    EXPECT_EQ(r.code, 2) << text << r.err;
    EXPECT_SAYS(r.err, said);
  }
  EXPECT_SAYS(gimbal({"serve", "--config", config_file("wrong.toml", "prot = 1")}).err, "did you mean port?");
  EXPECT_EQ(gimbal({"serve", "--config", "/no/such/file"}).code, 1);
  const Ran r = gimbal({"serve"}, {.environment = {{"GIMBAL_PORT", "x"}}});
  EXPECT_EQ(r.code, 2);
  EXPECT_SAYS(r.err, "the environment: GIMBAL_PORT must be a whole number");
  EXPECT_SAYS(gimbal({"serve"}, {.environment = {{"GIMBAL_API_KEY", "[1"}}}).err, "has no end");
  EXPECT_SAYS(gimbal({"serve", "no-model"}, {.environment = {{"GIMBAL_PORT", "tcp://10.0.0.1:80"}}}).err,
              "no-model");  // Kubernetes
  const Ran mistyped = gimbal({"serve"}, {.environment = {{"GIMBAL_PROT", "1"}}});
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_SAYS(mistyped.err, "the environment: gimbal serve has no option 'GIMBAL_PROT'");
  EXPECT_SAYS(mistyped.err, "did you mean GIMBAL_PORT?");
  // Of others: Kubernetes, a wrapper of somebody's; and nothing is said by what is empty.
  EXPECT_SAYS(gimbal({"serve", "no-model"}, {.environment = {{"GIMBAL_SERVICE_HOST", "10.0.0.1"},
                                                             {"GIMBAL_SERVICE_PORT", "80"},
                                                             {"GIMBAL_PORT_8080_TCP_ADDR", "10.0.0.1"},
                                                             {"GIMBAL_HTTP_PORT", "tcp://10.0.0.1:80"},
                                                             {"GIMBAL_INSTALLATION_FOLDER", "/opt"},
                                                             {"GIMBAL_MODELS", ""},
                                                             {"GIMBAL_PROT", ""}}})
                  .err,
              "no-model");
  EXPECT_SAYS(gimbal({"serve", "--help"}).out, "--config FILE");
}

// Of requests; what else was told is left out.
std::vector<Json> requests_in(const std::string& log) {
  std::vector<Json> all;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    Json j = Json::parse(line, nullptr, false);
    EXPECT_TRUE(j.is_object() && j.contains("time")) << line;
    if (j.contains("request_id")) all.push_back(std::move(j));
  }
  return all;
}

TEST(ServeLog, EachRequestIsOneObject) {
  const std::string log = temporary_path("serve.log");
  Serving s({"--log-json", "--api-key", "hush-hush"}, {}, log);
  const std::string key = "x-api-key: hush-hush\r\n";
  const Json chat = {{"model", s.model},
                     {"max_tokens", 5},
                     {"temperature", 0},
                     {"messages", {{{"role", "user"}, {"content", "whisper"}}}}};
  const HttpAnswer whole = s.ask(post("/v1/messages", chat.dump(), key));
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Json usage = Json::parse(whole.body)["usage"];
  Json streamed = chat;
  streamed["stream"] = true;
  s.ask(post("/api/chat", Json{{"model", s.model}, {"messages", chat["messages"]}}.dump(), key));
  HttpAnswer stream = s.ask(post("/v1/chat/completions", streamed.dump(), key));
  const HttpAnswer refused = s.ask(get("/v1/models?key=hush-hush"));
  const HttpAnswer unknown = s.ask(get("/v1/models/nothing", key));
  const HttpAnswer broken = s.ask("GET /v1/models HTTP/1.1\r\n\r\n");
  {
    HttpClient leaves(s.port);
    Json endless = streamed;
    endless["max_tokens"] = 400, endless["ignore_eos"] = true;
    leaves.send(post("/v1/chat/completions", endless.dump(), key));
    EXPECT_TRUE(leaves.reads("delta"));
  }
  while (contains(s.ask(get("/metrics", key)).body, "gimbal_requests_running 1")) {}
  EXPECT_EQ(s.end(SIGTERM), 0);

  std::vector<Json> lines = requests_in(log);
  std::erase_if(lines, [](const Json& j) { return j["path"] == "/metrics"; });
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0]["request_id"], whole.headers.at("request-id"));
  EXPECT_EQ(lines[0]["api"], "anthropic");
  EXPECT_EQ(lines[0]["method"], "POST");
  EXPECT_EQ(lines[0]["path"], "/v1/messages");
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_EQ(lines[0]["model"], s.model);
  EXPECT_EQ(lines[0]["prompt_tokens"], usage["input_tokens"]);
  EXPECT_EQ(lines[0]["generated_tokens"], usage["output_tokens"]);
  EXPECT_EQ(lines[0]["end"], "length");
  EXPECT_GT(lines[0]["first_token_seconds"], 0);
  EXPECT_GE(lines[0]["seconds"], lines[0]["first_token_seconds"]);
  EXPECT_EQ(lines[1]["api"], "ollama");
  EXPECT_EQ(lines[2]["request_id"], stream.headers.at("x-request-id"));
  EXPECT_EQ(lines[2]["generated_tokens"], 5);
  EXPECT_EQ(lines[3]["end"], "invalid_api_key");
  EXPECT_EQ(lines[3]["request_id"], refused.headers.at("x-request-id"));
  EXPECT_EQ(lines[3]["path"], "/v1/models");
  EXPECT_EQ(lines[4]["end"], "model_not_found");
  EXPECT_EQ(lines[4]["request_id"], unknown.headers.at("x-request-id"));
  EXPECT_EQ(lines[5]["status"], 400);
  EXPECT_EQ(lines[5]["request_id"], broken.headers.at("x-request-id"));
  EXPECT_EQ(lines[6]["end"], "client-left");
  EXPECT_GE(lines[6]["generated_tokens"], 1);
  for (const Json& l : lines) {
    EXPECT_FALSE(contains(l.dump(), "whisper"));
    EXPECT_FALSE(contains(l.dump(), "hush")) << l;
  }
}

TEST(ServeLog, ForPeopleAndWithPromptsWhereAsked) {
  const std::string log = temporary_path("serve.txt");
  {
    Serving s({"--log-prompts"}, {}, log);
    s.ask("/v1/completions", {{"prompt", "whisper"}, {"max_tokens", 1}, {"user", std::string(9000, 'a')}});
    s.ask(get("/a%0ab%1b"));
    s.end(SIGTERM);
  }
  std::ifstream file(log);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_SAYS(text, "POST /v1/completions ");
  EXPECT_SAYS(text, "whisper");
  EXPECT_SAYS(text, "aaaa...");
  EXPECT_SAYS(text, "GET /a\\x0ab\\x1b 404");
  EXPECT_LT(text.size(), 5000u);
}

// Nothing reads stderr: the server continues.
TEST(ServeLog, AFullPipeHoldsNobodyUp) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const Serving s({"--log-json"}, {}, format("/proc/self/fd/{}", pipes[1]));
  HttpClient c(s.port);
  for (int i = 0; i < 1000; i++) ASSERT_EQ(c.ask(get("/health/live")).status, 200);
  close(pipes[0]);
  close(pipes[1]);
}

}  // namespace
}  // namespace gimbal::test
