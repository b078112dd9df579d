// A server with LoRA adapters, from the command line to the text: requests with different ones at the same
// time get what `gimbal run` writes with these adapters, from the server's own engine and from a worker's.
#include <thread>

#include "support/adapters.h"
#include "support/golden.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

TEST(ServeAdapters, RequestsWithDifferentOnesAtOnce) {
  const std::string path = golden_dir() + "/stories/stories260K-f32.gguf";
  const std::string a = make_adapter(path).adapter, b = make_adapter(path, 8).adapter;
  const auto run = [&](Args lora) {
    Args args = {"run", path, "-p", "Once upon a time", "--greedy", "-n", "24", "--json"};
    for (const std::string& l : lora) args.push_back("--lora"), args.push_back(l);
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 0) << r.err;
    return Json::parse(r.out)["tokens"];
  };
  const Json none = Json::array(), second = {{{"id", 1}, {"scale", 0.5}}},
             both = {{{"id", 0}, {"scale", 0.25}}, {{"id", 1}, {"scale", -1}}};
  const std::vector<std::pair<Json, Json>> texts = {{nullptr, run({a + ":0.7"})},
                                                    {none, run({})},
                                                    {second, run({b + ":0.5"})},
                                                    {both, run({a + ":0.25", b + ":-1"})}};
  for (size_t i = 0; i < texts.size(); i++)
    for (size_t k = 0; k < i; k++) EXPECT_NE(texts[i].second, texts[k].second) << "adapters that do nothing";
  for (const char* workers : {"none", "cpu"}) {
    SCOPED_TRACE(workers);
    const Serving s({path, "--lora", a + ":0.7", "--lora", b + ":0", "--workers", workers});
    const auto complete = [&](const Json& lora) {
      Json body = {
          {"prompt", "Once upon a time"}, {"n_predict", 24}, {"temperature", 0}, {"return_tokens", true}};
      if (!lora.is_null()) body["lora"] = lora;
      const HttpAnswer got = s.ask(post("/completion", body.dump()));
      EXPECT_EQ(got.status, 200) << got.body;
      return Json::parse(got.body)["tokens"];
    };
    std::vector<Json> got(3 * texts.size());
    std::vector<std::thread> clients;
    for (size_t i = 0; i < got.size(); i++)
      clients.emplace_back([&, i] { got[i] = complete(texts[i % texts.size()].first); });
    for (std::thread& t : clients) t.join();
    for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(got[i], texts[i % texts.size()].second) << i;
    // The scales of requests that give none.
    EXPECT_EQ(s.ask(post("/lora-adapters", both.dump())).status, 200);
    EXPECT_EQ(complete(nullptr), texts[3].second);
    const Json list = Json::parse(s.ask(get("/lora-adapters")).body);
    EXPECT_EQ(list[1]["scale"], -1);
  }
}

// An adapter belongs to one model, so a server with one has no other models.
TEST(ServeAdapters, WithoutANameTheModelIsTheDefault) {
  const std::string adapter = make_adapter(GIMBAL_SOURCE_DIR "/assets/stories260K.gguf").adapter;
  const Serving s({"--lora", adapter});
  const Json models = Json::parse(s.ask(get("/v1/models")).body)["data"];
  ASSERT_EQ(models.size(), 2u) << models;
  EXPECT_EQ(models[1]["parent"], "stories260K");
  EXPECT_EQ(Json::parse(s.ask(get("/lora-adapters")).body).size(), 1u);
  EXPECT_EQ(s.ask(post("/api/pull", R"({"model":"x"})")).status, 403);
}

}  // namespace
}  // namespace gimbal::test
