// POST /v1/rerank, by a reranker and by embeddings.
#include <cmath>

#include "support/serving.h"

namespace gimbal::test {
namespace {

TEST(Rerank, ByAModelThatWasMadeForIt) {
  const std::string folder = temporary_path("reranker");
  std::filesystem::create_directories(folder);
  const Ran made =
      run_program({"/usr/bin/env", "python3", std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/reranker.py",
                   golden_dir() + "/more/embed/bert.gguf", folder, std::getenv("GIMBAL")},
                  {.environment = quiet_home()});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json expected = Json::parse(made.out);
  const Serving s({folder + "/reranker.gguf"});
  Json asked = {{"query", expected["query"]}, {"documents", expected["documents"]}};
  const Json j = s.ask("/v1/rerank", asked);
  EXPECT_EQ(j["method"], "reranker");
  ASSERT_EQ(j["results"].size(), 4u);
  double before = 1;
  for (const Json& r : j["results"]) {
    const double score = r["relevance_score"], raw = expected["scores"][r["index"].get<size_t>()];
    EXPECT_NEAR(score, 1 / (1 + std::exp(-raw)), 1e-4) << r;
    EXPECT_LE(score, before);
    before = score;
    EXPECT_FALSE(r.contains("document"));
  }
  asked["top_n"] = 2, asked["return_documents"] = true;
  const Json two = s.ask("/v1/rerank", asked)["results"];
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0]["relevance_score"], j["results"][0]["relevance_score"]);
  EXPECT_EQ(two[0]["document"]["text"], expected["documents"][two[0]["index"].get<size_t>()]);
  // It makes no embeddings, and says so.
  for (const char* path : {"/v1/embeddings", "/api/embed"}) {
    const HttpAnswer a = s.ask(post(path, Json{{"model", s.model}, {"input", "a"}}.dump()));
    EXPECT_EQ(a.status, 400);
    EXPECT_SAYS(a.body, "/v1/rerank");
  }
  EXPECT_SAYS(gimbal({"embed", folder + "/reranker.gguf", "a", "--pooling", "mean"}).err, "rank");
}

// A decoder whose last token answers "yes" or "no", with its own words around question and document.
TEST(Rerank, ByADecoderThatWasMadeForIt) {
  const std::string folder = temporary_path("yes-no");
  std::filesystem::create_directories(folder);
  const Ran made = run_program(
      {"/usr/bin/env", "python3", std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/yes_no_reranker.py",
       golden_dir() + "/arch/llama-gqa.gguf", folder, std::getenv("GIMBAL")},
      {.environment = quiet_home()});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json expected = Json::parse(made.out);
  const std::string model = folder + "/yes-no.gguf";
  const Serving s({model});
  const Json j = s.ask("/v1/rerank", {{"query", expected["query"]}, {"documents", expected["documents"]}});
  EXPECT_EQ(j["method"], "reranker");
  ASSERT_EQ(j["results"].size(), 4u);
  // What llama.cpp's server says of the file with --rerank, but for the document that spells a control token.
  const std::map<size_t, double> peer = {{0, 0.12504}, {1, 0.15236}, {3, 0.10491}};
  double least = 1, most = 0;
  for (const Json& r : j["results"]) {
    const double score = r["relevance_score"], raw = expected["scores"][r["index"].get<size_t>()];
    EXPECT_NEAR(score, 1 / (1 + std::exp(-raw)), 1e-4) << r;
    if (const auto at = peer.find(r["index"].get<size_t>()); at != peer.end()) {
      EXPECT_NEAR(score, at->second, 2e-4);
    }
    least = std::min(least, score), most = std::max(most, score);
  }
  EXPECT_GT(most - least, 0.01) << "they differ";
  // It continues no text, and what makes no sense with it says so.
  const HttpAnswer chat = s.ask(post("/v1/completions", Json{{"model", s.model}, {"prompt", "a"}}.dump()));
  EXPECT_EQ(chat.status, 400) << chat.body;
  EXPECT_EQ(s.ask(post("/v1/embeddings", Json{{"model", s.model}, {"input", "a"}}.dump())).status, 400);
  EXPECT_SAYS(gimbal({"run", model, "-p", "a"}).err, "/v1/rerank");
}

TEST(Rerank, ByEmbeddingsAndItSaysSo) {
  const Serving s;
  const Json documents = {"Once upon a time", {{"text", "a dog"}}, "Once upon"};
  const Json j = s.ask("/v1/rerank", {{"query", "Once upon a time"}, {"documents", documents}});
  EXPECT_EQ(j["method"], "cosine-similarity");
  EXPECT_EQ(j["results"][0]["index"], 0);
  EXPECT_NEAR(j["results"][0]["relevance_score"].get<double>(), 1, 1e-6);
  const Json both = s.ask("/v1/embeddings", {{"input", {"Once upon a time", "a dog"}}})["data"];
  double sum = 0;
  for (size_t i = 0; i < both[0]["embedding"].size(); i++)
    sum += both[0]["embedding"][i].get<double>() * both[1]["embedding"][i].get<double>();
  for (const Json& r : j["results"])
    if (r["index"] == 1) { EXPECT_NEAR(r["relevance_score"].get<double>(), sum, 1e-6); }
  for (const Json& wrong :
       {Json{{"documents", {"a"}}}, Json{{"query", "a"}}, Json{{"query", "a"}, {"documents", Json::array()}},
        Json{{"query", "a"}, {"documents", {1}}}, Json{{"query", "a"}, {"documents", {"b"}}, {"top_n", 0}},
        Json{{"query", "a"}, {"documents", {{{"title", "b"}}}}}}) {
    Json body = wrong;
    body["model"] = s.model;
    EXPECT_EQ(s.ask(post("/v1/rerank", body.dump())).status, 400) << body;
  }
}

}  // namespace
}  // namespace gimbal::test
