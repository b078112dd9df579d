// What Ollama's clients send and read beyond a text (other_apis_test): options of a server, durations, old
// paths.
#include "server/api_server.h"

namespace gimbal::test {
namespace {

class OllamaClients : public ApiTest {
 protected:
  void SetUp() override {
    services.log.tell = [this](const api::RequestRecord& r) {
      const std::lock_guard lock(mutex_);
      records_.push_back(r);
    };
    start();
  }
  HttpAnswer generate(const Json& options) {
    return ask("/api/generate",
               {{"model", "stories"}, {"prompt", "Once"}, {"stream", false}, {"options", options}});
  }
  api::RequestRecord last_record() {
    const std::lock_guard lock(mutex_);
    return records_.back();
  }

 private:
  std::mutex mutex_;
  std::vector<api::RequestRecord> records_;
};

TEST_F(OllamaClients, Logprobs) {
  for (const char* path : {"/api/generate", "/api/chat"}) {
    Json body = {{"model", "stories"}, {"stream", false}, {"logprobs", true}, {"top_logprobs", 2}};
    body["options"] = {{"num_predict", 3}};
    if (path == std::string_view("/api/chat")) body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
    else body["prompt"] = "Hi";
    const Json j = Json::parse(ask(path, body).body);
    ASSERT_EQ(j["logprobs"].size(), 3u) << j;
    EXPECT_EQ(j["logprobs"][0]["top_logprobs"].size(), 2u);
    body["stream"] = true;
    const std::string lines = ask(path, body).body;
    const Json first = Json::parse(lines.substr(0, lines.find('\n')));
    ASSERT_EQ(first["logprobs"].size(), 1u) << first;
    EXPECT_EQ(first["logprobs"][0]["token"], j["logprobs"][0]["token"]);
    body["logprobs"] = false;
    EXPECT_EQ(ask(path, body).status, 400) << "top_logprobs alone";
  }
}

// The example "With options" of Ollama's docs/api.md, without the samplers that gimbal has not.
TEST_F(OllamaClients, OptionsOfTheServerAreTaken) {
  const HttpAnswer a = generate({{"num_keep", 5},
                                 {"seed", 42},
                                 {"num_predict", 2},
                                 {"top_k", 20},
                                 {"top_p", 0.9},
                                 {"repeat_last_n", 33},
                                 {"numa", false},
                                 {"num_ctx", 1024},
                                 {"num_batch", 2},
                                 {"num_gpu", 1},
                                 {"main_gpu", 0},
                                 {"use_mmap", true},
                                 {"num_thread", 8},
                                 {"use_mlock", true},
                                 {"low_vram", false},
                                 {"vocab_only", true},
                                 {"unheard_of", {1}},
                                 {"draft_num_predict", 4}});
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_EQ(service().asked()[0].sampler.seed, 42u);
  EXPECT_EQ(service().asked()[0].max_tokens, 2);
  const std::vector<std::string> notes = last_record().notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], "the context is 256 tokens, not 1024");
  for (const char* name : {"num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "use_mlock",
                           "low_vram", "vocab_only", "unheard_of", "draft_num_predict", "numa"})
    EXPECT_NE(notes[1].find(name), std::string::npos) << name;
  for (const char* name : {"seed", "num_keep", "top_k", "num_ctx"})
    EXPECT_EQ(notes[1].find(name), std::string::npos) << name;
  EXPECT_TRUE(a.headers.contains("x-gimbal-note"));
  EXPECT_NE(api::log_line(last_record(), false).find("note: the context is"), std::string::npos);
  EXPECT_EQ(Json::parse(api::log_line(last_record(), true))["notes"].size(), 2u);
  EXPECT_EQ(ask("/api/embed", {{"model", "stories"}, {"input", "a"}, {"options", {{"num_gpu", 1}}}}).status,
            200);
}

TEST_F(OllamaClients, ASizeIsNeverAMistake) {
  for (const int64_t tokens : {int64_t(-1), int64_t(0), int64_t(1), int64_t(256), int64_t(1) << 40}) {
    const HttpAnswer a = generate({{"num_ctx", tokens}});
    EXPECT_EQ(a.status, 200) << a.body;
    EXPECT_EQ(a.headers.contains("x-gimbal-note"), tokens > 256) << tokens;
  }
  for (const Json& wrong : {Json{{"num_gpu", "all"}}, Json{{"use_mmap", 1}}, Json{{"num_ctx", 1.5}}})
    EXPECT_EQ(generate(wrong).status, 400) << wrong;
  EXPECT_EQ(ask("/api/chat", {{"model", "stories"}, {"options", 5}}).status, 400);
}

// Names from a request do not become headers or lines of a log.
TEST_F(OllamaClients, NamesInANoteAreEscapedAndFew) {
  Json options = Json::object();
  for (int i = 0; i < 500; i++) options["x\r\ny: " + std::to_string(i)] = i;
  const HttpAnswer a = generate(options);
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_FALSE(a.headers.contains("y"));
  EXPECT_LT(a.headers.at("x-gimbal-note").size(), 2000u);
  EXPECT_LT(api::log_line(last_record(), false).size(), 4000u);
}

// Tools divide counts by them, in whole answers as in streams.
TEST_F(OllamaClients, DurationsOfWholeAnswers) {
  for (const bool stream : {false, true}) {
    const HttpAnswer a = ask("/api/generate", {{"model", "stories"}, {"prompt", "Once"}, {"stream", stream}});
    ASSERT_EQ(a.status, 200) << a.body;
    const size_t line = a.body.rfind('\n', a.body.size() - 2);
    const Json j = Json::parse(line == std::string::npos ? a.body : a.body.substr(line + 1));
    ASSERT_EQ(j["done"], true);
    for (const char* name : {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"})
      EXPECT_GT(j[name].get<int64_t>(), 0) << name;
    EXPECT_GE(j["total_duration"].get<int64_t>() + 3,
              j["prompt_eval_duration"].get<int64_t>() + j["eval_duration"].get<int64_t>());
  }
}

TEST_F(OllamaClients, TheOldPathOfEmbeddings) {
  const Json j = json(ask("/api/embeddings", {{"model", "stories"}, {"prompt", "a"}, {"keep_alive", "5m"}}));
  EXPECT_EQ(j, (Json{{"embedding", {0.6f, -0.8f}}}));
  EXPECT_EQ(json(ask("/api/embeddings", {{"model", "stories"}}))["embedding"], Json::array());
  EXPECT_EQ(ask("/api/embeddings", {{"model", "stories"}, {"prompt", std::string(9000, 'x')}}).status, 400);
  EXPECT_EQ(ask("/api/embeddings", {{"model", "other"}, {"prompt", "a"}}).status, 404);
  EXPECT_EQ(ask("/api/embeddings", {{"model", "stories"}, {"input", "a"}}).status, 400);
}

// keep_alive 0: the model is unloaded after its answer.
TEST_F(OllamaClients, AChatWithMessagesIsAnsweredBeforeItsModelLeaves) {
  const Json body = {{"model", "stories"},
                     {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                     {"keep_alive", 0},
                     {"stream", false}};
  const Json j = json(ask("/api/chat", body));
  EXPECT_EQ(j["message"]["content"], "once upon a time") << j;
  EXPECT_EQ(service().asked().size(), 1u);
}

// A server that was started with models has no others, and pages cannot send what changes one.
TEST_F(OllamaClients, WhatChangesAServer) {
  const std::vector<std::pair<const char*, Json>> changes = {
      {"/api/pull", {{"model", "x"}}},
      {"/api/copy", {{"source", "x"}, {"destination", "y"}}},
      {"/api/create", {{"model", "x"}, {"from", "y"}}},
  };
  for (const auto& [path, fields] : changes) {
    const HttpAnswer a = ask(path, fields);
    EXPECT_EQ(a.status, 403) << path;
    EXPECT_NE(a.body.find("all-models"), std::string::npos) << a.body;
  }
  const std::string body = R"({"model":"stories"})";
  const auto sent = [&](const std::string& line, const char* type) {
    return ask(line + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + type +
               "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body)
        .status;
  };
  for (const char* line : {"POST /api/pull", "DELETE /api/delete", "POST /api/copy", "POST /api/create",
                           "POST /v1/models/load", "POST /v1/models/unload"})
    EXPECT_EQ(sent(line, "text/plain"), 415) << line;
  EXPECT_EQ(sent("DELETE /api/delete", "application/json"), 403);
  EXPECT_EQ(json(ask("/v1/models/load", {{"model", "stories"}}))["state"], "loaded");
  EXPECT_EQ(ask("/v1/models/unload", {{"model", "stories"}}).status, 200);
  EXPECT_EQ(ask("/v1/models/unload", {{"model", "other"}}).status, 404);
  EXPECT_EQ(ask("/v1/models/load", {{"model", "stories"}, {"x", 1}}).status, 400);
}

}  // namespace
}  // namespace gimbal::test
