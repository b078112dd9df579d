// gimbal serve from the outside; its workers are in serve_workers_test.
#include "support/on_terminal.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

TEST(Serve, TheSameTextAsTheCommandLine) {
  const Serving s;
  ASSERT_GT(s.port, 0);
  EXPECT_EQ(s.ask(get("/health/ready")).status, 200);
  const std::string text =
      gimbal({"run", "--raw", "--greedy", "-p", "Once upon a time", "-n", "40", "--quiet"}).out;
  const Json j =
      s.ask("/v1/completions", {{"prompt", "Once upon a time"}, {"temperature", 0}, {"max_tokens", 40}});
  EXPECT_EQ(j["choices"][0]["text"].get<std::string>() + "\n", text);
  EXPECT_EQ(j["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(j["usage"]["completion_tokens"], 40);
  const Json tokens = json_of(gimbal({"tokenize", "--text", "Once upon a time", "--json"}))["tokens"];
  EXPECT_EQ(j["usage"]["prompt_tokens"], tokens.size());
  // Many at once, streamed or not, with a seed: everybody gets what he would get alone.
  const Json seeded = {{"prompt", "The dog"}, {"seed", 7}, {"max_tokens", 30}, {"logprobs", 2}};
  const Json alone = s.ask("/v1/completions", seeded)["choices"][0];
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; i++)
    clients.emplace_back([&, i] {
      if (i % 4 == 0) s.ask("/v1/completions", {{"prompt", "A cat"}, {"max_tokens", 50}, {"n", 3}});
      EXPECT_EQ(s.ask("/v1/completions", seeded)["choices"][0], alone);
    });
  for (std::thread& c : clients) c.join();
  // A receipt says what computed it.
  const Json receipt = Json::parse(s.ask(get("/v1/receipts/" + j["id"].get<std::string>())).body);
  EXPECT_EQ(receipt["ops"][0]["device"], "cpu:0");
  bool product = false;
  for (const Json& op : receipt["ops"])
    product |= op["op"] == "mat_mul" && !op["reason"].get<std::string>().empty();
  EXPECT_TRUE(product);
  const std::string metrics = s.ask(get("/metrics")).body;
  EXPECT_SAYS(metrics, "gimbal_requests_running 0\n");
  EXPECT_SAYS(metrics, "gimbal_time_to_first_token_seconds_bucket{le=\"+Inf\"}");
}

// Beside what `gimbal logits` computes for the same tokens: by worker processes and by the server itself.
TEST(Serve, AnEchoHasTheLogprobsOfThePrompt) {
  const std::string text = "Once upon a time there was a little dog. He liked to run and play in the park.";
  std::string ids;
  const Json tokens = json_of(gimbal({"tokenize", "--text", text, "--json"}))["tokens"];
  std::vector<int> prompt;
  for (const Json& t : tokens) {
    prompt.push_back(t.is_number() ? t.get<int>() : t["id"].get<int>());
    ids += (ids.empty() ? "" : ",") + std::to_string(prompt.back());
  }
  const std::string file = temporary_path("logits.f32");
  ASSERT_EQ(gimbal({"logits", "--tokens", ids, "--positions", "all", "-o", file}).code, 0);
  const std::string bytes = contents_of(file);
  std::vector<float> logits(bytes.size() / sizeof(float));
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  const size_t vocabulary = logits.size() / prompt.size();
  for (const Args& how : {Args{}, Args{"--workers", "none"}}) {
    const Serving s(how);
    for (int round : {0, 1}) {  // the second one finds the prompt computed
      const Json l = s.ask("/v1/completions", {{"prompt", text},
                                               {"echo", true},
                                               {"logprobs", 1},
                                               {"max_tokens", round},
                                               {"temperature", 0}})["choices"][0]["logprobs"];
      ASSERT_EQ(l["tokens"].size(), prompt.size() + size_t(round));
      EXPECT_TRUE(l["token_logprobs"][0].is_null());
      for (size_t i = 1; i < prompt.size(); i++) {
        const float* row = &logits[(i - 1) * vocabulary];
        double sum = 0, most = -1e300;
        for (size_t t = 0; t < vocabulary; t++)
          sum += std::exp(double(row[t])), most = std::max(most, double(row[t]));
        EXPECT_NEAR(l["token_logprobs"][i].get<double>(), row[prompt[i]] - std::log(sum), 1e-5) << i;
        EXPECT_NEAR(l["top_logprobs"][i].begin().value().get<double>(), most - std::log(sum), 1e-5) << i;
      }
    }
  }
}

TEST(Serve, EmbeddingsOfAModelThatGenerates) {
  const Serving s;
  const Json j = s.ask("/v1/embeddings", {{"input", {"Once upon", "a time"}}});
  const Json alone = s.ask("/v1/embeddings", {{"input", "a time"}});
  EXPECT_EQ(j["data"][1]["embedding"], alone["data"][0]["embedding"]);
  double length = 0;
  for (const Json& x : alone["data"][0]["embedding"]) length += x.get<double>() * x.get<double>();
  EXPECT_NEAR(length, 1, 1e-5);
  EXPECT_EQ(s.ask("/api/embed", {{"input", "a time"}})["embeddings"][0], alone["data"][0]["embedding"]);
}

TEST(Serve, ASignalLetsAnswersEnd) {
  Serving s;
  HttpClient c(s.port);
  c.send(post("/v1/completions", Json{{"model", s.model},
                                      {"prompt", "Once"},
                                      {"stream", true},
                                      {"max_tokens", 300},
                                      {"ignore_eos", true},
                                      {"temperature", 0}}
                                     .dump()));
  EXPECT_TRUE(c.reads("text_completion"));
  EXPECT_EQ(s.end(SIGTERM), 0);
  const HttpAnswer a = c.answer();
  EXPECT_TRUE(a.whole);
  EXPECT_TRUE(a.body.ends_with("data: [DONE]\n\n"));
  EXPECT_SAYS(a.body, "\"finish_reason\":\"length\"");
}

// As by a terminal that is closed, or by a script that has logs reopened.
TEST(Serve, AHangUpEndsNothing) {
  const std::string log = temporary_path("hang-up.log");
  Serving s({}, {}, log);
  HttpClient c(s.port);
  c.send(
      post("/v1/completions",
           Json{{"model", s.model}, {"prompt", "Once"}, {"max_tokens", 400}, {"ignore_eos", true}}.dump()));
  ASSERT_TRUE(send_signal(s.pid(), SIGHUP));
  for (int i = 0; i < 6000 && contents_of(log).find("SIGHUP: there is no certificate") == std::string::npos;
       i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_SAYS(contents_of(log), "SIGHUP: there is no certificate to reload");
  EXPECT_EQ(c.answer().status, 200);
  EXPECT_EQ(s.ask(get("/health/ready")).status, 200);
  EXPECT_EQ(s.end(SIGTERM), 0);
}

// The drain has 60 seconds, and ends without them.
TEST(Serve, AHalfSentRequestDoesNotDelayTheEnd) {
  const std::string log = temporary_path("half-sent.log");
  Serving s({"--drain-timeout", "60", "--body-timeout", "3600"}, {}, log);
  HttpClient idle(s.port), half(s.port);
  half.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "99\r\n\r\n{");
  EXPECT_EQ(s.ask(get("/health/ready")).status, 200);
  EXPECT_EQ(s.end(SIGTERM), 0);
  EXPECT_EQ(half.answer().status, 503);
  // Such an answer tells the log why.
  EXPECT_SAYS(contents_of(log), "503");
}

// As by Ctrl-Z and `fg`, or by a container that is paused.
TEST(Serve, StoppedForAMomentItGoesOn) {
  Serving s;
  ASSERT_EQ(s.ask(get("/health/ready")).status, 200);
  for (int i = 0; i < 3; i++) {
    int status = 0;
    ASSERT_TRUE(send_signal(s.pid(), SIGSTOP));
    ASSERT_EQ(waitpid(s.pid(), &status, WUNTRACED), s.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    ASSERT_TRUE(send_signal(s.pid(), SIGCONT));
    ASSERT_EQ(s.ask(get("/health/ready")).status, 200);
  }
  EXPECT_EQ(s.ask("/v1/completions", {{"prompt", "Once"}, {"max_tokens", 2}})["usage"]["completion_tokens"],
            2);
  EXPECT_EQ(s.end(SIGTERM), 0);
}

TEST(Serve, AnAnswerThatCannotBeWaitedForEndsWithAnError) {
  // Texts that take many seconds: one of a full context of 512 is written before a busy machine lets this
  // process send the signal.
  Serving s({"--drain-timeout", "0", "-c", "8192"});
  Json body{{"model", s.model},   {"prompt", "Once"},   {"n", 8},
            {"max_tokens", 7000}, {"ignore_eos", true}, {"temperature", 0}};
  HttpClient whole(s.port), streamed(s.port);
  whole.send(post("/v1/completions", body.dump()));
  body["stream"] = true;
  streamed.send(post("/v1/completions", body.dump()));
  EXPECT_TRUE(streamed.reads("text_completion"));
  EXPECT_EQ(s.end(SIGTERM), 0);
  const HttpAnswer a = streamed.answer(), b = whole.answer();
  EXPECT_TRUE(a.whole) << "the stream has its end";
  EXPECT_SAYS(a.body, "the server ends, and this answer with it");
  EXPECT_EQ(b.status, 503) << b.body;
  EXPECT_SAYS(b.body, "the server ends, and this answer with it");
}

TEST(Serve, SeveralModelsAndKeys) {
  const Serving s({"default", story_file("q8_0"), "--api-key", "secret"});
  EXPECT_EQ(s.ask(get("/v1/models")).status, 401);
  const Json list = Json::parse(s.ask(get("/v1/models", "x-api-key: secret\r\n")).body)["data"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]["id"], "stories260K-q8_0");
  const std::string body =
      R"({"model":"stories260K-q8_0","messages":[{"role":"user","content":"Hi"}],"max_tokens":3})";
  EXPECT_EQ(s.ask(post("/v1/chat/completions", body, "Authorization: Bearer secret\r\n")).status, 200);
  const Json tags = Json::parse(s.ask(get("/api/tags", "x-api-key: secret\r\n")).body)["models"];
  EXPECT_EQ(tags[0]["digest"].get<std::string>().size(), 64u);
}

// Ollama's way to load, to keep and to unload a model.
TEST(Serve, AModelStaysAsLongAsARequestSays) {
  const Serving s;
  const auto loaded = [&] { return Json::parse(s.ask(get("/api/ps")).body)["models"]; };
  const auto until = [&] { return loaded()[0]["expires_at"].get<std::string>(); };
  const auto gone = [&] {  // it is unloaded behind the answer
    for (int i = 0; i < 6000 && !loaded().empty(); i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return loaded().empty();
  };
  EXPECT_EQ(until(), "9999-12-31T23:59:59Z");
  EXPECT_EQ(s.ask("/api/generate", {{"keep_alive", "1h30m"}})["done_reason"], "load");
  EXPECT_LT(until(), "9999");
  EXPECT_EQ(s.ask("/api/generate", {{"keep_alive", -1}})["done_reason"], "load");
  EXPECT_EQ(until(), "9999-12-31T23:59:59Z");
  EXPECT_EQ(s.ask("/api/chat", {{"keep_alive", 0}})["done_reason"], "unload");
  EXPECT_TRUE(loaded().empty()) << "no answer uses it: it is unloaded before this one";
  EXPECT_EQ(s.ask("/api/generate", {{"keep_alive", 0}})["done_reason"], "unload")
      << "nothing is loaded for that";
  EXPECT_TRUE(gone());
  // With a text it is unloaded behind the answer.
  const Json options = {{"num_predict", 2}};
  EXPECT_EQ(
      s.ask("/api/generate",
            {{"prompt", "a"}, {"keep_alive", "0s"}, {"stream", false}, {"options", options}})["eval_count"],
      2);
  EXPECT_TRUE(gone());
  EXPECT_EQ(s.ask("/api/embed", {{"input", "a"}, {"keep_alive", "300"}})["model"], s.model);
  EXPECT_LT(until(), "9999");
  for (const Json& wrong : {Json("soon"), Json("5x"), Json("."), Json(""), Json("m"), Json(true)})
    EXPECT_EQ(s.ask(post("/api/generate", Json{{"model", s.model}, {"keep_alive", wrong}}.dump())).status,
              400)
        << wrong;
  EXPECT_EQ(s.ask(post("/api/generate", R"({"model":"other","keep_alive":0})")).status, 404);
}

TEST(Serve, OnATerminalAFirstRequestIsReadyToBeTyped) {
  NEEDS_A_TERMINAL();
  const Seen s =
      on_terminal({"serve", "--port", "0", "-t", "1", "--api-key", "k"}, {{"in a browser", "\x03"}});
  EXPECT_EQ(s.code, 0) << s.text;
  EXPECT_SAYS(s.text, "serving stories260K at http://127.0.0.1:");
  EXPECT_SAYS(s.text, "  try: curl http://127.0.0.1:");
  EXPECT_SAYS(s.text, "  or open http://127.0.0.1:");
  EXPECT_SAYS(s.text, "-H \"Authorization: Bearer $GIMBAL_API_KEY\" -d '{\"model\":\"stories260K\",");
}

TEST(Serve, WhatCannotBeServed) {
  EXPECT_EQ(gimbal({"serve", "no-such-model.gguf", "--port", "0"}).code, 1);
  EXPECT_EQ(gimbal({"serve", "--port", "x"}).code, 2);
  EXPECT_EQ(gimbal({"serve", "--host", "nowhere", "--port", "0"}).code, 2);
  EXPECT_SAYS(gimbal({"serve", "--help"}).out, "--api-key");
}

}  // namespace
}  // namespace gimbal::test
