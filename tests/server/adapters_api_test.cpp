// GET and POST /lora-adapters, and the field `lora` of requests, over a scripted service: the scales that
// reach it.
#include "base/file.h"
#include "server/api_server.h"
#include "support/gguf_writer.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

// A model with two adapters, "sql" at 1 and "poems" at 0.
class Adapted : public ApiTest {
 protected:
  void SetUp() override {
    GgufWriter w;
    w.string("general.type", "adapter")
        .string("adapter.type", "lora")
        .string("general.architecture", "llama");
    w.tensor("blk.0.attn_q.weight.lora_a", {4, 2}, 0, std::string(32, '\0'));
    for (const auto& [name, scale] : {std::pair("sql", 1.0f), std::pair("poems", 0.0f)}) {
      const std::string path = temporary_path(std::string(name) + ".gguf");
      ASSERT_TRUE(write_file(path, w.build()));
      const auto ok = models.model->is_adapted({path, scale});
      ASSERT_TRUE(ok) << ok.error().message;
    }
    ApiTest::SetUp();
  }
  std::vector<float> asked() { return service().asked().back().adapters; }
  std::vector<float> scales() {
    std::vector<float> all;
    const Json list = json(ask(get("/lora-adapters")));
    for (size_t i = 0; i < list.size(); i++) {
      EXPECT_EQ(list[i]["id"], i);
      EXPECT_EQ(list[i]["path"], i ? "poems.gguf" : "sql.gguf") << "no folder";
      all.push_back(list[i]["scale"].get<float>());
    }
    return all;
  }
  using Scales = std::vector<float>;
};

TEST_F(Adapted, ScalesOfARequest) {
  EXPECT_EQ(scales(), (Scales{1, 0}));
  EXPECT_EQ(complete(Json::object())["generation_settings"]["lora"][0]["scale"], 1);
  EXPECT_EQ(asked(), Scales()) << "as the model was loaded";
  const Json j = complete({{"lora", {{{"id", 1}, {"scale", 0.5}}}}});
  EXPECT_EQ(asked(), (Scales{0, 0.5f})) << "one that is not named is not applied";
  EXPECT_EQ(j["generation_settings"]["lora"][1]["scale"], 0.5);
  complete({{"lora", Json::array()}});
  EXPECT_EQ(asked(), (Scales{0, 0}));
  // OpenAI's paths take the field as well.
  const Json chat = {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                     {"lora", {{{"id", 0}, {"scale", -2}}, {{"id", 1}, {"scale", 3}}}}};
  EXPECT_EQ(ask("/v1/chat/completions", chat).status, 200);
  EXPECT_EQ(asked(), (Scales{-2, 3}));
  // And so do those of Anthropic and Ollama.
  Json message = chat, text = {{"model", "stories"}, {"prompt", "a"}, {"stream", false}};
  message["max_tokens"] = 5, text["lora"] = chat["lora"];
  Json talk = {{"model", "stories"}, {"messages", chat["messages"]}, {"lora", chat["lora"]}};
  for (const auto& [path, body] :
       {std::pair("/v1/messages", message), {"/api/generate", text}, {"/api/chat", talk}}) {
    complete({{"lora", Json::array()}});
    EXPECT_EQ(ask(path, body).status, 200) << path;
    EXPECT_EQ(asked(), (Scales{-2, 3})) << path;
    Json wrong = body;
    wrong["lora"] = Json::array({{{"id", 2}, {"scale", 1}}});
    const HttpAnswer refused = ask(path, wrong);
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_NE(refused.body.find("have the ids 0, 1"), std::string::npos) << refused.body;
  }
  for (const auto& [lora, param] : {std::pair<Json, const char*>{{{{"id", 2}, {"scale", 1}}}, "lora[0].id"},
                                    {{{{"id", -1}, {"scale", 1}}}, "lora[0].id"},
                                    {{{{"id", 0}, {"scale", 1}}, {{"id", 0}, {"scale", 2}}}, "lora[1].id"},
                                    {{{{"id", 0}}}, "lora[0].scale"},
                                    {{{{"id", 0}, {"scale", "x"}}}, "lora[0].scale"},
                                    {{{{"id", 0}, {"scale", 1}, {"x", 1}}}, "lora[0].x"},
                                    {Json::array({1}), "lora[0]"},
                                    {"sql", "lora"}})
    for (const char* path : {"/completion", "/v1/completions", "/lora-adapters"}) {
      SCOPED_TRACE(path + lora.dump());
      expect_wrong(path, path[1] == 'l' ? Json{{"lora", lora}} : Json{{"prompt", "a"}, {"lora", lora}},
                   param);
    }
  const HttpAnswer unknown = ask("/completion", {{"prompt", "a"}, {"lora", {{{"id", 7}, {"scale", 1}}}}});
  EXPECT_NE(unknown.body.find("have the ids 0, 1"), std::string::npos) << unknown.body;
}

TEST_F(Adapted, ScalesOfRequestsThatGiveNone) {
  const Json done = json(ask("/lora-adapters", Json::array({{{"id", 1}, {"scale", 0.25}}})));
  EXPECT_EQ(done, (Json{{"success", true}}));
  EXPECT_EQ(scales(), (Scales{0, 0.25f}));
  for (const auto& [path, body] :
       {std::pair<const char*, Json>{"/completion", {{"prompt", "a"}}},
        {"/v1/completions", {{"prompt", "a"}}},
        {"/v1/messages", {{"max_tokens", 5}, {"messages", {{{"role", "user"}, {"content", "a"}}}}}},
        {"/api/generate", {{"model", "stories"}, {"prompt", "a"}, {"stream", false}}},
        {"/v1/jobs", {{"prompt", "a"}}}}) {
    EXPECT_EQ(ask(path, body).status, 200) << path;
    EXPECT_EQ(asked(), (Scales{0, 0.25f})) << path;
  }
  complete({{"lora", {{{"id", 0}, {"scale", 2}}}}});
  EXPECT_EQ(asked(), (Scales{2, 0})) << "a request's own come first";
  // What is wrong changes nothing; a form of a web page cannot send it.
  EXPECT_EQ(ask("/lora-adapters", Json::array({{{"id", 5}, {"scale", 1}}})).status, 400);
  EXPECT_EQ(ask("/lora-adapters", Json::object()).status, 400);
  EXPECT_EQ(ask("/completion", Json::array({{{"id", 0}, {"scale", 1}}})).status, 400)
      << "a list is no completion";
  EXPECT_EQ(scales(), (Scales{0, 0.25f}));
  EXPECT_EQ(ask("/lora-adapters", {{"model", "stories"}, {"lora", {{{"id", 0}, {"scale", 1}}}}}).status, 200);
  EXPECT_EQ(scales(), (Scales{1, 0}));
}

// As vLLM's server names adapters.
TEST_F(Adapted, AnAdapterIsAModelByName) {
  const auto of = [&](const char* name) {
    const HttpAnswer a = ask("/v1/completions", {{"model", name}, {"prompt", "a"}});
    EXPECT_EQ(a.status, 200) << a.body;
    EXPECT_EQ(json(a)["model"], "stories");
    return a;
  };
  EXPECT_EQ(of("poems").headers.count("x-gimbal-note"), 0u);
  EXPECT_EQ(asked(), (Scales{0, 1})) << "loaded at 0";
  of("sql");
  EXPECT_EQ(asked(), (Scales{1, 0}));
  EXPECT_EQ(of("novels").headers.count("x-gimbal-note"), 1u);
  EXPECT_EQ(asked(), Scales()) << "any other name means the model";
  const Json list = json(ask(get("/v1/models")))["data"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2]["id"], "poems");
  EXPECT_EQ(list[2]["parent"], "stories");
  models.second = "other";
  EXPECT_EQ(ask("/v1/completions", {{"model", "poems"}, {"prompt", "a"}}).status, 404) << "of which model?";
  EXPECT_EQ(json(ask(get("/v1/models")))["data"].size(), 2u);
}

TEST_F(ApiTest, WithoutAdapters) {
  EXPECT_EQ(json(ask(get("/lora-adapters"))), Json::array());
  EXPECT_EQ(ask("/lora-adapters", Json::array()).status, 200);
  const HttpAnswer a = ask("/completion", {{"prompt", "a"}, {"lora", {{{"id", 0}, {"scale", 1}}}}});
  EXPECT_EQ(a.status, 400);
  EXPECT_NE(a.body.find("the model has no adapters"), std::string::npos) << a.body;
}

}  // namespace
}  // namespace gimbal::test
