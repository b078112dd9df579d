// The models of a machine over HTTP: found, loaded, unloaded, described, deleted.
#include "support/made_gguf.h"
#include "support/serving.h"

#include "base/file.h"
#include "files/gguf.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// A home with models in a folder of the user's.
class ServeModels : public testing::Test {
 protected:
  void SetUp() override {
    home = temporary_path("models-home");
    fs::remove_all(home);
    fs::create_directories(home + "/models");
    fs::copy_file(story_file("q8_0"), home + "/models/small.gguf");
    environment = {{"HOME", home}, {"GIMBAL_MODELS", home + "/models"}};
  }
  static HttpAnswer change(const Serving& s, const std::string& path, const Json& body) {
    return s.ask(post(path, body.dump()));
  }
  static HttpAnswer remove(const Serving& s, const std::string& name) {
    const std::string body = Json{{"model", name}}.dump();
    return s.ask("DELETE /api/delete HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                 ("Content-Length: " + std::to_string(body.size())) + "\r\n\r\n" + body);
  }
  static std::vector<std::string> names(const Serving& s) {
    std::vector<std::string> all;
    const Json list = Json::parse(s.ask(get("/v1/models")).body);
    for (const Json& m : list["data"]) all.push_back(m["id"]);
    return all;
  }
  static Json state(const Serving& s, const std::string& name) {
    return Json::parse(s.ask(get("/v1/models/" + name)).body);
  }
  // A model is unloaded when its last request has ended, which is a moment behind the answer.
  static Json unload(const Serving& s, const std::string& name) {
    Json j;
    for (int i = 0; i < 600 && j["state"] != "unloaded"; i++) {
      if (i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      j = Json::parse(change(s, "/v1/models/unload", {{"model", name}}).body);
    }
    return j;
  }
  // Greedy: the same weights give the same text.
  static Json generate(const Serving& s, const std::string& name, Json more = Json::object()) {
    Json body = {{"model", name}, {"prompt", "Once upon"}, {"stream", false}, {"raw", true}};
    body["options"] = {{"temperature", 0}, {"num_predict", 8}};
    if (more.contains("options")) body["options"].update(more["options"]), more.erase("options");
    body.update(more);
    const HttpAnswer a = change(s, "/api/generate", body);
    EXPECT_EQ(a.status, 200) << a.body;
    Json j = Json::parse(a.body, nullptr, false);
    j["note"] = a.headers.contains("x-gimbal-note") ? a.headers.at("x-gimbal-note") : "";
    return j;
  }
  std::string home;
  std::map<std::string, std::string> environment;
};

TEST_F(ServeModels, FoundModelsLoadWhenARequestNamesThem) {
  const Serving s({}, environment);
  EXPECT_EQ(names(s), (std::vector<std::string>{"stories260K", "small"}));
  EXPECT_EQ(state(s, "small")["state"], "unloaded");
  const Json tags = Json::parse(s.ask(get("/api/tags")).body)["models"];
  EXPECT_EQ(tags[1]["details"]["quantization_level"], "Q8_0");
  const std::string text = generate(s, "small:latest")["response"];
  EXPECT_EQ(generate(Serving({story_file("q8_0")}, environment), "stories260K-q8_0")["response"], text);
  EXPECT_EQ(state(s, "small")["state"], "loaded");
  const Json ps = Json::parse(s.ask(get("/api/ps")).body)["models"];
  ASSERT_EQ(ps.size(), 2u);
  EXPECT_EQ(ps[1]["context_length"], 512);
  EXPECT_EQ(ps[1]["size_vram"], 0);
  EXPECT_GT(ps[1]["size"], 0);
  // A file that comes later.
  fs::copy_file(story_file("q8_0"), home + "/models/later.gguf");
  for (int i = 0; i < 600 && change(s, "/api/show", {{"model", "later"}}).status != 200; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(generate(s, "later")["response"], text);
  EXPECT_EQ(change(s, "/api/generate", {{"model", home + "/models/small.gguf"}}).status, 404);
}

TEST_F(ServeModels, AServerWithNamedModelsHasOnlyThese) {
  const Serving s({"default"}, environment);
  EXPECT_EQ(names(s).size(), 1u);
  EXPECT_EQ(change(s, "/api/generate", {{"model", "small"}}).status, 404);
  EXPECT_EQ(change(s, "/api/pull", {{"model", "x"}}).status, 403);
  EXPECT_EQ(change(s, "/api/copy", {{"source", "x"}, {"destination", "y"}}).status, 403);
  EXPECT_EQ(change(s, "/api/create", {{"model", "x"}, {"from", "y"}}).status, 403);
  EXPECT_EQ(remove(s, "stories260K").status, 403);
  const Serving all({"default", "--all-models"}, environment);
  EXPECT_EQ(names(all).size(), 2u);
  EXPECT_EQ(gimbal({"serve", "--all-models", "--lora", "x"}).code, 2);
}

TEST_F(ServeModels, LoadAndUnload) {
  const Serving s({}, environment);
  const Json loaded = Json::parse(change(s, "/v1/models/load", {{"model", "small"}}).body);
  EXPECT_EQ(loaded["id"], "small");
  EXPECT_EQ(loaded["state"], "loaded");
  EXPECT_EQ(loaded["context_length"], 512);
  const Json unloaded = unload(s, "small:latest");
  EXPECT_EQ(unloaded["state"], "unloaded");
  EXPECT_EQ(unloaded["id"], "small");
  EXPECT_EQ(change(s, "/v1/models/load", {{"model", "x"}}).status, 404);
  EXPECT_EQ(change(s, "/v1/models/unload", {{"model", "x"}}).status, 404);
  EXPECT_EQ(s.ask("POST /v1/models/unload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n"
                  "{\"model\":\"small\"}")
                .status,
            415);
}

TEST_F(ServeModels, DescribedModels) {
  const auto system_of = [](const Serving& s, const std::string& name) {
    return Json::parse(change(s, "/api/show", {{"model", name}}).body)["system"];
  };
  {
    const Serving s({}, environment);
    EXPECT_EQ(change(s, "/api/copy", {{"source", "small"}, {"destination", "mine:v1"}}).status, 200);
    const HttpAnswer made = change(s, "/api/create",
                                   {{"model", "mario"},
                                    {"from", "small"},
                                    {"system", "You are Mario."},
                                    {"parameters", {{"num_predict", 3}, {"stop", {"zzz"}}}}});
    EXPECT_EQ(made.status, 200) << made.body;
    EXPECT_TRUE(made.body.ends_with("{\"status\":\"success\"}\n")) << made.body;
    EXPECT_EQ(names(s), (std::vector<std::string>{"stories260K", "mario", "mine:v1", "small"}));
    EXPECT_EQ(generate(s, "mine:v1")["model"], "mine:v1");
    EXPECT_EQ(generate(s, "mine:v1")["response"], generate(s, "small")["response"]);
    // The weights are loaded once: the last name has them.
    EXPECT_EQ(Json::parse(s.ask(get("/api/ps")).body)["models"].size(), 2u);
    EXPECT_EQ(system_of(s, "mario"), "You are Mario.");
    for (const Json& wrong :
         {Json{{"from", "small"}, {"template", "{{ .System }}"}},
          Json{{"from", "small"}, {"template", "{% if %}"}},
          Json{{"from", "small"}, {"parameters", {{"temperature", "hot"}}}},
          Json{{"from", "small"}, {"quantize", "q4_0"}}, Json{{"from", "small"}, {"files", {{"a", "b"}}}},
          Json{{"modelfile", "FROM small"}}}) {
      Json body = wrong;
      body["model"] = "wrong";
      EXPECT_EQ(change(s, "/api/create", body).status, 400) << body;
    }
    EXPECT_EQ(change(s, "/api/create", {{"model", "a"}, {"from", "nothing"}}).status, 404);
    EXPECT_EQ(change(s, "/api/create", {{"model", "a"}, {"from", "/etc/passwd"}}).status, 404);
    EXPECT_EQ(change(s, "/api/create", {{"model", "../a"}, {"from", "small"}}).status, 400);
  }
  const Serving s({}, environment);  // another server knows them, too
  const Json chat = {
      {"model", "mario"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"stream", false}};
  const Json mario = Json::parse(change(s, "/api/chat", chat).body);
  EXPECT_EQ(mario["eval_count"], 3) << mario;
  Json base = chat, told = chat;
  base["model"] = told["model"] = "small";
  told["messages"].insert(told["messages"].begin(), Json{{"role", "system"}, {"content", "You are Mario."}});
  base["options"] = told["options"] = {{"num_predict", 3}};
  const auto tokens = [&](const Json& body) {
    return Json::parse(change(s, "/api/chat", body).body)["prompt_eval_count"];
  };
  EXPECT_EQ(mario["prompt_eval_count"], tokens(told));
  EXPECT_NE(mario["prompt_eval_count"], tokens(base));
  EXPECT_EQ(remove(s, "mario").status, 200);
  EXPECT_EQ(remove(s, "mario").status, 404);
  EXPECT_EQ(remove(s, "mine:v1").status, 200);
  EXPECT_EQ(remove(s, "small").status, 403) << "a file of the user's";
  EXPECT_TRUE(fs::exists(home + "/models/small.gguf"));
  EXPECT_EQ(names(s).size(), 2u);
}

// The story's model as one that was trained with a longer context.
void write_longer(const std::string& path) {
  const auto bytes = read_file(story_file("q8_0"));
  ASSERT_TRUE(bytes);
  const auto from = parse_gguf({reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, "story");
  ASSERT_TRUE(from);
  MadeGguf to;
  for (std::string_view key : from->metadata().keys())
    if (key == "llama.context_length") to.u32(key, 16384);
    else to.add(key, *from->metadata().find(key));
  for (const StoredTensor& t : from->tensors()) to.tensor(t, text_of(*from->read(t)));
  std::ofstream(path, std::ios::binary) << to.build();
}

TEST_F(ServeModels, ALargerContextWhereARequestWantsOne) {
  ASSERT_NO_FATAL_FAILURE(write_longer(home + "/models/long.gguf"));
  const Serving s({home + "/models/long.gguf"}, environment);
  const auto context = [&] { return state(s, "long")["context_length"]; };
  EXPECT_EQ(context(), 4096);
  const Json first = generate(s, "long");
  EXPECT_EQ(generate(s, "long", {{"options", {{"num_ctx", 100}}}})["note"], "");
  EXPECT_EQ(context(), 4096);
  const Json grown = generate(s, "long", {{"options", {{"num_ctx", 9000}}}, {"keep_alive", 600}});
  EXPECT_EQ(grown["note"], "");
  EXPECT_EQ(grown["response"], first["response"]);
  EXPECT_EQ(context(), 9000);
  EXPECT_EQ(generate(s, "long")["response"], first["response"]);
  EXPECT_EQ(context(), 9000) << "it does not shrink again";
  // Beyond what it was trained with there is a note.
  EXPECT_EQ(generate(s, "long", {{"options", {{"num_ctx", 1 << 30}}}})["note"],
            "the context is 16384 tokens, not 1073741824");
  EXPECT_EQ(context(), 16384);
  // A smaller one is no reason for a smaller model.
  EXPECT_EQ(unload(s, "long")["state"], "unloaded");
  EXPECT_EQ(generate(s, "long", {{"options", {{"num_ctx", 100}}}})["note"], "");
  EXPECT_EQ(context(), 4096);
  // The operator's word.
  const Serving fixed({home + "/models/long.gguf", "--ctx", "300"}, environment);
  EXPECT_EQ(generate(fixed, "long", {{"options", {{"num_ctx", 9000}}}})["note"],
            "the context is 300 tokens, not 9000");
  EXPECT_EQ(state(fixed, "long")["context_length"], 300);
}

// Answers that are being written end in the model that began them.
TEST_F(ServeModels, AnAnswerGoesOnWhileItsModelIsLoadedAgain) {
  ASSERT_NO_FATAL_FAILURE(write_longer(home + "/models/long.gguf"));
  const Serving s({home + "/models/long.gguf"}, environment);
  HttpClient c(s.port);
  c.send(post("/v1/completions", Json{{"model", "long"},
                                      {"prompt", "Once"},
                                      {"stream", true},
                                      {"max_tokens", 400},
                                      {"ignore_eos", true},
                                      {"temperature", 0}}
                                     .dump()));
  EXPECT_TRUE(c.reads("text_completion"));
  EXPECT_EQ(generate(s, "long", {{"options", {{"num_ctx", 6000}}}})["note"], "");
  const HttpAnswer a = c.answer();
  EXPECT_TRUE(a.body.ends_with("data: [DONE]\n\n"));
  EXPECT_SAYS(a.body, "\"finish_reason\":\"length\"");
}

// Two models of one server, each with its own settings (--config).
TEST_F(ServeModels, SettingsOfOneModel) {
  const std::string file = home + "/serve.toml";
  std::ofstream(file) << "model = [\"default\", \"" + story_file("q8_0") + R"("]
ctx = 300
[model.stories260K-q8_0]   # its own
ctx = 200
kv-type = f16
greedy = true
workers = none
system = "You are Mario."
)";
  const Serving s({"--config", file}, environment);
  EXPECT_EQ(state(s, "stories260K")["context_length"], 300);
  const auto text = [&](const std::string& model, Json more = Json::object()) {
    Json body = {{"model", model}, {"prompt", "Once"}, {"max_tokens", 20}};
    body.update(more);
    return Json::parse(change(s, "/v1/completions", body).body)["choices"][0]["text"].get<std::string>();
  };
  const std::string greedy = text("stories260K-q8_0", {{"temperature", 0}});
  for (int i = 0; i < 3; i++) EXPECT_EQ(text("stories260K-q8_0"), greedy);
  EXPECT_NE(text("stories260K-q8_0", {{"temperature", 2}, {"seed", 1}}), greedy);
  EXPECT_NE(text("stories260K", {{"seed", 1}}), text("stories260K", {{"temperature", 0}}));
  EXPECT_EQ(state(s, "stories260K-q8_0")["context_length"], 200);
  const auto tokens = [&](const std::string& model) {
    const Json body = {
        {"model", model}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 1}};
    return Json::parse(change(s, "/v1/chat/completions", body).body)["usage"]["prompt_tokens"].get<int>();
  };
  EXPECT_GT(tokens("stories260K-q8_0"), tokens("stories260K"));
  EXPECT_EQ(workers_of(s.pid()).size(), 1u) << "one of the models is computed by the server itself";
}

}  // namespace
}  // namespace gimbal::test
