// gimbal run and serve with --backend llama.cpp and --library, with stand-ins for libllama (llama/shim.cpp)
// whose logits have the bits of gimbal's engine: so every text must be the engine's own. Packaged releases of
// libllama: tests/llama/run.sh.
#include <gtest/gtest.h>

#include "support/cli.h"
#include "support/llama_shim.h"
#include "support/serving.h"

namespace gimbal::test {
namespace {

class LibraryRun : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(llama_shim()))
      GTEST_SKIP() << "this build cannot make the stand-in for libllama";
  }
};

Args with_library(Args args) {
  args.insert(args.end(), {"--library", llama_shim()});
  return args;
}

// Both answers as --json: by the library, and by gimbal's engine.
void expect_same_answers(const Args& args) {
  Args all = {"run", story_file("q8_0"), "-t", "1", "--json", "--seed", "5"};
  all.insert(all.end(), args.begin(), args.end());
  const Ran theirs = gimbal(with_library(all)), ours = gimbal(all);
  ASSERT_EQ(theirs.code, 0) << theirs.err;
  ASSERT_EQ(ours.code, 0) << ours.err;
  const Json a = json_of(theirs), b = json_of(ours);
  for (const char* key : {"text", "tokens", "logprobs", "finish", "prompt_tokens", "seed", "model"})
    EXPECT_EQ(a[key], b[key]) << key;
  EXPECT_EQ(a["device"], "llama.cpp");
  EXPECT_EQ(a["library"]["path"], llama_shim());
  EXPECT_EQ(a["library"]["release"], "b8390");
  EXPECT_GT(a["tokens"].size(), 3u);
}

TEST_F(LibraryRun, TextsAreThoseOfTheEngineOnEqualLogits) {
  expect_same_answers({"-p", "Once upon a time", "--greedy", "-n", "40"});
  expect_same_answers({"-p", "Once upon a time", "-n", "40", "--logprobs", "3"});
  expect_same_answers(
      {"-p", "One day", "--temperature", "1.3", "--top-k", "12", "-n", "60", "--stop", "mom"});
  expect_same_answers({"-p", "Name:", "--grammar", "root ::= \" \" [A-Z] [a-z]{3,9} \".\""});
  expect_same_answers({"--chat", "-p", "Why?", "--greedy", "-n", "20"});
  expect_same_answers({"--tokens", "1,403,407", "--greedy", "-n", "500", "--ctx", "64"});
}

TEST_F(LibraryRun, StreamsTheTextAndNamesTheLibrary) {
  const Ran r = gimbal(with_library({"run", "-p", "Once upon a time", "--greedy", "-n", "20", "--stats"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, gimbal({"run", "-p", "Once upon a time", "--greedy", "-n", "20", "--quiet"}).out);
  for (const std::string& part :
       {std::string("libllama of release b8390"), llama_shim(), std::string("(--library)"),
        std::string("gimbal verifies none of them"), std::string("generation")})
    EXPECT_SAYS(r.err, part);
  const Ran ids = gimbal(
      with_library({"run", "-p", "Once upon a time", "--greedy", "-n", "5", "--print-tokens", "--quiet"}));
  EXPECT_EQ(
      ids.out,
      gimbal({"run", "-p", "Once upon a time", "--greedy", "-n", "5", "--print-tokens", "--quiet"}).out);
}

// The search of `gimbal find-libraries`.
TEST_F(LibraryRun, TheLibraryOfTheEnvironmentIsFound) {
  const std::string folder = std::filesystem::path(llama_shim()).parent_path();
  const Ran found = gimbal({"run", "-p", "Once", "-n", "3", "--greedy", "--backend", "llama.cpp"},
                           {.environment = {{"BITNET_CROSSVAL_LIBDIR", folder}}});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_SAYS(found.err, llama_shim() + " (BITNET_CROSSVAL_LIBDIR)");
  const Ran empty = gimbal({"run", "-p", "Once", "--backend", "llama.cpp"},
                           {.environment = {{"BITNET_CROSSVAL_LIBDIR", testing::TempDir()}}});
  EXPECT_EQ(empty.code, 1);
  EXPECT_SAYS(empty.err, "BITNET_CROSSVAL_LIBDIR");
  EXPECT_EQ(empty.out, "") << "no other engine takes its place";
}

TEST_F(LibraryRun, NothingIsIgnored) {
  for (const Args& more : std::vector<Args>{{"--gpu-layers", "3"},
                                            {"--kv-type", "q8_0"},
                                            {"--cpu-variant", "avx2"},
                                            {"--numerics", "fast"},
                                            {"--lora", "adapter.gguf"},
                                            {"--split", "cpu=rest"},
                                            {"--draft", "ngram"},
                                            {"--prompt-cache", "file"},
                                            {"--certificate", "file"},
                                            {"--verify", "always"}}) {
    Args args = with_library({"run", "-p", "Once"});
    args.insert(args.end(), more.begin(), more.end());
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << more[0];
    EXPECT_SAYS(r.err, "gimbal's own engine");
    EXPECT_EQ(r.out, "");
  }
  for (const Args& more : std::vector<Args>{{"--parallel", "3"},
                                            {"--cache-tokens", "1000"},
                                            {"--queue", "3"},
                                            {"--draft", "ngram"},
                                            {"--workers", "cpu"},
                                            {"--prefix-store", testing::TempDir()}}) {
    Args args = with_library({"serve", "--port", "0"});
    args.insert(args.end(), more.begin(), more.end());
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << more[0];
    EXPECT_SAYS(r.err, more[0] + " belongs to gimbal's own engine");
  }
  const Ran both = gimbal(with_library({"run", "-p", "Once", "--backend", "cpu"}));
  EXPECT_EQ(both.code, 2);
  EXPECT_SAYS(both.err, "--backend cpu does not");
  EXPECT_EQ(gimbal({"plan", "--backend", "llama.cpp"}).code, 2) << "only texts are written by a library";
}

TEST_F(LibraryRun, ItsFailuresAreErrorsWithItsWords) {
  const auto run = [](const std::string& mode) {
    return gimbal(with_library({"run", "-p", "Once upon a time", "-n", "30", "--greedy"}),
                  {.environment = {{"GIMBAL_SHIM", mode}}});
  };
  const Ran crash = run("crash-later");
  EXPECT_EQ(crash.code, 1);
  EXPECT_SAYS(crash.err, "GGML_ASSERT(rows == 7) failed");
  EXPECT_SAYS(crash.err, "ended its process");
  const Ran refused = run("no-model");
  EXPECT_EQ(refused.code, 1);
  EXPECT_SAYS(refused.err, "unknown model architecture: 'made-up'");
  const Ran absent = gimbal({"run", "-p", "Once", "--library", "/no/libllama.so"});
  EXPECT_NE(absent.code, 0);
  EXPECT_SAYS(absent.err, "/no/libllama.so");
}

Json completed(const Serving& s, const std::string& prompt, int tokens, Json more = Json::object()) {
  more.update({{"prompt", prompt}, {"max_tokens", tokens}, {"temperature", 0}});
  return s.ask("/v1/completions", std::move(more));
}

TEST_F(LibraryRun, AServerAnswersManyClients) {
  const Serving theirs(with_library({})), ours;
  std::vector<Json> answers(6);
  std::vector<std::thread> clients;
  const std::vector<std::string> prompts = {"Once upon a time", "One day", "The dog",
                                            "Once upon",        "Tom saw", "Once"};
  for (size_t i = 0; i < prompts.size(); i++)
    clients.emplace_back([&, i] { answers[i] = completed(theirs, prompts[i], 24); });
  for (std::thread& t : clients) t.join();
  for (size_t i = 0; i < prompts.size(); i++) {
    const Json want = completed(ours, prompts[i], 24);
    EXPECT_EQ(answers[i]["choices"][0]["text"], want["choices"][0]["text"]) << prompts[i];
    EXPECT_EQ(answers[i]["usage"]["completion_tokens"], want["usage"]["completion_tokens"]);
    EXPECT_EQ(answers[i]["usage"]["prompt_tokens"], want["usage"]["prompt_tokens"]);
  }
  const Json number = {
      {"response_format",
       {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", {{"type", "integer"}}}}}}}};
  EXPECT_EQ(completed(theirs, "Count:", 8, number)["choices"][0]["text"],
            completed(ours, "Count:", 8, number)["choices"][0]["text"]);
  const Json explained = Json::parse(theirs.ask(get("/v1/explain/" + theirs.model)).body, nullptr, false);
  EXPECT_SAYS(explained.dump(), "libllama of release b8390");
}

TEST_F(LibraryRun, AServerRefusesWhatALibraryCannot) {
  const Serving s(with_library({}));
  for (const auto& [path, body] : std::vector<std::pair<std::string, Json>>{
           {"/v1/embeddings", {{"input", "Once"}}},
           {"/v1/completions", {{"prompt", "Once"}, {"max_tokens", 1}, {"echo", true}, {"logprobs", 1}}},
           {"/v1/completions", {{"prompt", "Once"}, {"max_tokens", 1}, {"certificate", true}}}}) {
    const HttpAnswer a = s.ask(post(path, body.dump()));
    EXPECT_GE(a.status, 400) << path << a.body;
    EXPECT_SAYS(a.body, "gimbal's own engine");
  }
}

TEST_F(LibraryRun, ALibraryThatCrashesIsStartedAgain) {
  const Serving s(with_library({}), {{"GIMBAL_SHIM", "crash-later"}});
  const std::string want = completed(s, "Once upon a time", 8)["choices"][0]["text"];
  EXPECT_EQ(completed(Serving(), "Once upon a time", 8)["choices"][0]["text"], want);
  const HttpAnswer lost =
      s.ask(post("/v1/completions", Json({{"prompt", "One day"}, {"max_tokens", 60}}).dump()));
  EXPECT_GE(lost.status, 500) << lost.body;
  EXPECT_EQ(completed(s, "Once upon a time", 8)["choices"][0]["text"], want);
}

TEST_F(LibraryRun, AClientThatLeavesFreesTheLibrary) {
  const Serving s(with_library({"--ctx", "512"}));
  {
    HttpClient leaves(s.port);
    leaves.send(
        post("/v1/completions",
             Json({{"prompt", "Once"}, {"max_tokens", 500}, {"stream", true}, {"ignore_eos", true}}).dump()));
    ASSERT_TRUE(leaves.reads("data: "));
  }
  EXPECT_EQ(completed(s, "Once", 3)["usage"]["completion_tokens"], 3);
}

}  // namespace
}  // namespace gimbal::test
