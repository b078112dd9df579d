// A worker that serves by itself: the same answers as `gimbal serve` and the command line give, and what it
// tells a hive. What a hive can do is in hive_test.
#include <fstream>

#include "support/fake_hive.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

const std::string& program() {
  static const std::string path = std::string(GIMBAL_WORKER_FOLDER) + "/gimbal-worker-cpu";
  return path;
}

class WorkerService : public Serving {
 public:
  explicit WorkerService(const Args& more = {}, const std::map<std::string, std::string>& environment = {},
                         const std::string& log = "")
      : Serving(Program, {program(), "--model", story_file("q8_0")}, more, environment, log) {}
};

Ran worker(Args args) {
  args.insert(args.begin(), program());
  RunSetup setup;
  setup.environment = quiet_home();
  return run_program(args, setup);
}

// What a job tells, from its beginning to its end.
struct Told {
  std::string text;
  int tokens = 0;
  Json end;
};
Told told(const std::string& stream, const std::string& id) {
  Told t;
  bool started = false, done = false;
  for (size_t at = 0, end; at < stream.size(); at = end + 2) {
    end = stream.find("\n\n", at);
    const std::string data = stream.substr(at + 6, end - at - 6);
    EXPECT_EQ(stream.substr(at, 6), "data: ");
    EXPECT_FALSE(done) << "more behind the end: " << data;
    if (data == "[DONE]") {
      done = true;
      continue;
    }
    const Json e = Json::parse(data);
    if (e["type"] == "started") {
      EXPECT_EQ(e["job_id"], id);
      started = true;
    } else if (e["type"] == "token") {
      EXPECT_EQ(e["i"], t.tokens++);
      t.text += e["t"];
    } else {
      t.end = e;
    }
  }
  EXPECT_TRUE(started && done) << stream;
  return t;
}
Told job(const Serving& s, const Json& body) {
  const HttpAnswer made = s.ask(post("/v1/jobs", body.dump()));
  EXPECT_EQ(made.status, 200) << made.body;
  const Json j = Json::parse(made.body);
  const HttpAnswer stream = s.ask(get(j["sse_url"]));
  EXPECT_EQ(stream.status, 200);
  EXPECT_TRUE(stream.whole);
  return told(stream.body, j["job_id"]);
}

TEST(WorkerService, JobsHaveTheTextOfTheCommandLine) {
  const WorkerService s;
  ASSERT_GT(s.port, 0);
  const std::string text = gimbal({"run", story_file("q8_0"), "--raw", "--greedy", "-p", "Once upon a time",
                                   "-n", "40", "--quiet"})
                               .out;
  const Ran single =
      worker({"--model", story_file("q8_0"), "--greedy", "-p", "Once upon a time", "-n", "40"});
  EXPECT_EQ(single.out, text) << single.err;
  const Told t = job(s, {{"model", s.model},
                         {"prompt", "Once upon a time"},
                         {"max_tokens", 40},
                         {"temperature", 0},
                         {"stream", true}});
  EXPECT_EQ(t.text + "\n", text);
  EXPECT_EQ(t.tokens, 40);
  EXPECT_EQ(t.end, Json({{"type", "end"}, {"tokens_out", 40}, {"stop_reason", "MAX_TOKENS"}}));
}

// The golden file's own tokens, by their text.
TEST(WorkerService, TheTextIsThatOfTheReference) {
  const Serving s(Serving::Program, {program(), "--model", story_file("f32")}, {});
  const Told t = job(s, {{"prompt", story()["prompt"]}, {"max_tokens", 64}, {"temperature", 0}});
  EXPECT_TRUE(contains(story()["greedy_text"], t.text)) << t.text;
  EXPECT_GT(t.text.size(), 100u);
}

// All that the API tells but for ids and times, with the probabilities of the tokens.
TEST(WorkerService, TheApisAnswerAsThoseOfTheServer) {
  const WorkerService w;
  const Serving s({story_file("q8_0"), "--workers", "none"});
  for (const Json& r :
       {Json{{"prompt", "The dog"}, {"seed", 7}, {"max_tokens", 30}, {"logprobs", 3}},
        Json{{"prompt", "A cat"}, {"temperature", 0}, {"max_tokens", 50}, {"n", 2}, {"seed", 1}},
        Json{{"prompt", "x"}, {"grammar", "root ::= \"yes\" | \"no\""}, {"max_tokens", 9}, {"seed", 5}}}) {
    const Json ours = w.ask("/v1/completions", r), theirs = s.ask("/v1/completions", r);
    EXPECT_EQ(ours["choices"], theirs["choices"]);
    EXPECT_EQ(ours["usage"], theirs["usage"]);
  }
  const Json chat = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 8}, {"seed", 3}};
  EXPECT_EQ(w.ask("/v1/chat/completions", chat)["choices"], s.ask("/v1/chat/completions", chat)["choices"]);
}

TEST(WorkerService, ManyAtOnceHearWhatTheyHearAlone) {
  const WorkerService s;
  const Json seeded = {{"prompt", "The dog"}, {"seed", 7}, {"max_tokens", 60}, {"temperature", 1}};
  const Told alone = job(s, seeded);
  EXPECT_GT(alone.tokens, 0);
  std::vector<std::thread> clients;
  for (int i = 0; i < 24; i++)
    clients.emplace_back([&, i] {
      if (i % 3 == 0) job(s, {{"prompt", "A cat " + std::to_string(i)}, {"max_tokens", 80}});
      EXPECT_EQ(job(s, seeded).text, alone.text);
    });
  for (std::thread& c : clients) c.join();
  const std::string metrics = s.ask(get("/metrics")).body;
  EXPECT_SAYS(metrics, "gimbal_requests_running 0\n");
  EXPECT_SAYS(metrics, format("gimbal_time_to_first_token_seconds_count {}\n", 1 + 24 + 8));
}

TEST(WorkerService, SaysWhoItIsAndWhatItComputesWith) {
  const WorkerService s({"--worker-id", "w-7.a_B", "--ctx", "256", "--parallel", "5"});
  EXPECT_EQ(s.start["worker_id"], "w-7.a_B");
  EXPECT_EQ(s.model, "stories260K-q8_0");
  EXPECT_EQ(Json::parse(s.ask(get("/health/live")).body), Json({{"status", "ok"}}));
  EXPECT_EQ(Json::parse(s.ask(get("/health/ready")).body),
            Json({{"status", "ok"}, {"worker_id", "w-7.a_B"}}));
  const HttpAnswer loading = s.ask(get("/v1/loading/progress"));
  EXPECT_TRUE(loading.body.ends_with("data: {\"stage\":\"ready\"}\n\ndata: [DONE]\n\n")) << loading.body;

  const Json backends = Json::parse(s.ask(get("/v1/backends")).body)["backends"];
  ASSERT_EQ(backends.size(), 1u) << "it looks for no others";
  EXPECT_EQ(backends[0]["backend"], "cpu");
  EXPECT_EQ(backends[0]["devices"][0]["id"], "cpu:0");
  EXPECT_EQ(s.ask(post("/v1/backends/reload", "")).status, 409);

  const Json j = s.ask("/v1/completions", {{"prompt", "Once"}, {"max_tokens", 2}});
  const Json receipt = Json::parse(s.ask(get("/v1/receipts/" + j["id"].get<std::string>())).body);
  bool product = false;
  for (const Json& op : receipt["ops"]) {
    EXPECT_EQ(op["device"], "cpu:0");
    product |= op["op"] == "mat_mul" && !op["reason"].get<std::string>().empty();
  }
  EXPECT_TRUE(product);
  const Json plan = Json::parse(s.ask(get("/v1/explain/" + s.model)).body)["workers"];
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0]["sequences"], 5);
  const Json show = Json::parse(s.ask(post("/api/show", Json{{"model", s.model}}.dump())).body);
  EXPECT_TRUE(show["model_info"].is_object());
  EXPECT_EQ(Json::parse(s.ask(get("/api/tags")).body)["models"][0]["digest"].get<std::string>().size(), 64u);

  // Of the APIs, what needs the model a second time.
  const HttpAnswer no = s.ask(post("/v1/embeddings", Json{{"model", s.model}, {"input", "x"}}.dump()));
  EXPECT_EQ(no.status, 400);
  EXPECT_SAYS(no.body, "computes no embeddings");
}

TEST(WorkerService, AnIdIsMadeUp) {
  const WorkerService a, b;
  EXPECT_TRUE(a.start["worker_id"].get<std::string>().starts_with("worker-"));
  EXPECT_NE(a.start["worker_id"], b.start["worker_id"]);
}

TEST(WorkerService, AJobIsCancelled) {
  const WorkerService s({"--ctx", "4096"});
  const Json body = {{"prompt", "Once"}, {"max_tokens", 4000}, {"temperature", 0}};
  const Json j = Json::parse(s.ask(post("/v1/jobs", body.dump())).body);
  HttpClient reader(s.port);
  reader.send(get(j["sse_url"]));
  EXPECT_TRUE(reader.reads("\"token\""));
  EXPECT_EQ(
      s.ask("DELETE /v1/jobs/" + j["job_id"].get<std::string>() + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
          .status,
      200);
  EXPECT_EQ(told(reader.answer().body, j["job_id"]).end["stop_reason"], "CANCELLED");
}

TEST(WorkerService, ASignalLetsAnswersEnd) {
  for (const int signal : {SIGTERM, SIGINT}) {
    WorkerService s;
    const Json body = {{"prompt", "Once"}, {"max_tokens", 300}, {"temperature", 0}};
    const Json j = Json::parse(s.ask(post("/v1/jobs", body.dump())).body);
    HttpClient c(s.port);
    c.send(get(j["sse_url"]));
    EXPECT_TRUE(c.reads("\"token\""));
    EXPECT_EQ(s.end(signal), 0);
    const HttpAnswer a = c.answer();
    EXPECT_TRUE(a.whole);
    EXPECT_EQ(told(a.body, j["job_id"]).end["stop_reason"], "MAX_TOKENS");
  }
}

TEST(WorkerService, KeysAreAskedFor) {
  const std::string body = R"({"prompt":"x","max_tokens":1})";
  const auto expect_guarded = [&](const WorkerService& s) {
    EXPECT_EQ(s.ask(post("/v1/jobs", body)).status, 401);
    EXPECT_EQ(s.ask(post("/v1/jobs", body, "x-api-key: wrong\r\n")).status, 401);
    EXPECT_EQ(s.ask(post("/v1/jobs", body, "Authorization: Bearer secret\r\n")).status, 200);
    EXPECT_EQ(s.ask(get("/health/ready")).status, 200);
    EXPECT_EQ(s.ask(get("/metrics")).status, 401);
  };
  expect_guarded(WorkerService({"--api-key", "secret"}));
  expect_guarded(WorkerService({}, {{"GIMBAL_API_KEY", "secret"}}));
}

TEST(WorkerService, AHiveHearsWhenItIsReadyAndThatItLives) {
  FakeHive hive;
  WorkerService s({"--worker-id", "w-1", "--hive-url", hive.url(), "--heartbeat", "1"});
  auto calls = hive.wait_for(2, "/v1/heartbeat");
  EXPECT_EQ(calls[0].path, "/v1/workers/ready");
  EXPECT_EQ(calls[0].body, Json({{"worker_id", "w-1"},
                                 {"url", s.start["url"]},
                                 {"model_ref", s.model},
                                 {"backend", "cpu"},
                                 {"device", 0}}));
  EXPECT_EQ(calls[1].body["health_status"], "healthy");
  EXPECT_EQ(s.end(SIGTERM), 0);
  calls = hive.calls();
  EXPECT_EQ(calls.back().body["health_status"], "degraded") << "while it takes no new requests";
  for (const auto& c : calls) EXPECT_EQ(c.body["worker_id"], "w-1");
}

// Away, silent, endless: requests are answered all the same, it is said once, and the end comes.
TEST(WorkerService, AHiveThatIsOutOfOrderDisturbsNobody) {
  const Json body = {{"prompt", "Once"}, {"max_tokens", 60}, {"temperature", 0}};
  const std::string text = job(WorkerService(), body).text;
  const uint16_t closed_port = FakeHive().port();
  for (const int way :
       {-1, int(FakeHive::Refuses), int(FakeHive::SaysNothing), int(FakeHive::EndlessHeaders)}) {
    SCOPED_TRACE(way);
    FakeHive hive(way < 0 ? FakeHive::Answers : FakeHive::Way(way));
    const std::string url = way < 0 ? format("http://127.0.0.1:{}", closed_port) : hive.url();
    const std::string log = temporary_path("worker.log");
    WorkerService s({"--hive-url", url, "--heartbeat", "1"}, {}, log);
    for (int i = 0; i < 3; i++) EXPECT_EQ(job(s, body).text, text);
    EXPECT_EQ(s.end(SIGTERM), 0);
    std::ifstream file(log);
    const std::string said((std::istreambuf_iterator<char>(file)), {});
    const size_t first = said.find("contact with the hive");
    EXPECT_EQ(said.find("contact with the hive", first + 1), said.npos) << said;
  }
}

struct Asked {
  Args args;
  std::string error, remedy;
};

TEST(WorkerService, OptionsThatMakeNoSenseAreRefused) {
  const std::string m = story_file("q8_0");
  for (const Asked& a : std::vector<Asked>{
           {{"-p", "x", "--host", "0.0.0.0"}, "--host is for a worker that serves", "add --port N"},
           {{"-p", "x", "--worker-id", "w"}, "--worker-id is for a worker that serves", "add --port N"},
           {{"-p", "x", "--hive-url", "http://h"}, "--hive-url is for a worker that serves", "add --port N"},
           {{"-p", "x", "--api-key", "k"}, "--api-key is for a worker that serves", "add --port N"},
           {{"-p", "x", "--parallel", "2"}, "--parallel is for a worker that serves", "add --port N"},
           {{"-p", "x", "--json"}, "--json is for a worker that serves", "add --port N"},
           {{"-p", "x", "--config", "f"}, "--config is for a worker that serves", "add --port N"},
           {{"--port", "0", "-p", "x"}, "--prompt is for a single text", "leave out --prompt"},
           {{"--port", "0", "--greedy"}, "--greedy is for a single text", "leave out --greedy"},
           {{"--port", "65536"}, "--port must be", "--help"},
           {{"--port", "0", "--worker-id", "a b"}, "--worker-id must be", "worker-1"},
           {{"--port", "0", "--heartbeat", "5"}, "no hive is given", "--hive-url"},
           {{"--port", "0", "--hive-url", "hive"},
            "--hive-url is not an http or https URL",
            "http://127.0.0.1:9200"},
           {{"--port", "0", "--host", "nowhere"}, "not an address to listen on", "127.0.0.1"},
           {{"--port", "0", "--tls-cert", "c"}, "go together", "give both"},
           {{"--prot", "0"}, "has no option '--prot'", "did you mean --port?"}}) {
    Args args = {"--model", m};
    args.insert(args.end(), a.args.begin(), a.args.end());
    const Ran r = worker(args);
    EXPECT_EQ(r.code, 2) << format("{}", fmt::join(a.args, " ")) << r.err;
    EXPECT_SAYS(r.err, a.error);
    EXPECT_SAYS(r.err, a.remedy);
  }
  EXPECT_EQ(worker({"--model", "/nonexistent/m.gguf", "--port", "0"}).code, 1);
  const std::string help = worker({"--help"}).out;
  for (const char* option :
       {"--port", "--worker-id", "--hive-url", "--heartbeat", "--api-key", "--drain-timeout"})
    EXPECT_SAYS(help, option);
}

// What is in the environment for `gimbal serve` makes no server of a worker, and does not disturb it.
TEST(WorkerService, WithoutAPortTheEnvironmentCountsForNothing) {
  RunSetup setup;
  setup.environment = quiet_home();
  setup.environment["GIMBAL_PORT"] = "8080", setup.environment["GIMBAL_API_KEY"] = "k";
  setup.environment["GIMBAL_PARALLEL"] = "none";
  const Ran r =
      run_program({program(), "--model", story_file("q8_0"), "-p", "Once", "-n", "3", "--greedy"}, setup);
  EXPECT_EQ(r.code, 0) << r.err;
}

}  // namespace
}  // namespace gimbal::test
