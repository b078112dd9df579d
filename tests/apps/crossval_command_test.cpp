// gimbal crossval, with stand-ins for libllama (llama/shim.cpp): the verdicts, and libraries that are
// refused, crash or hang. Packaged releases of libllama: tests/llama/run.sh.
#include <gtest/gtest.h>

#include "support/cli.h"
#include "support/llama_shim.h"

namespace gimbal::test {
namespace {

constexpr const char* kVerdictText = "Once upon a time there was a small red house.";

// `mode`: of the shim. The text is short: each run computes the reference.
Ran crossval(const std::string& mode, Args more = {}, const std::string& library = llama_shim()) {
  Args args{"crossval", story_file("f32"), "--library", library, "--greedy", "4", "--text", kVerdictText};
  args.insert(args.end(), more.begin(), more.end());
  return gimbal(args, {.environment = {{"GIMBAL_SHIM", mode}}});
}

class CrossvalCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(llama_shim()))
      GTEST_SKIP() << "this build cannot make the stand-in for libllama";
  }
};

TEST_F(CrossvalCommand, TheSameNumbersAreTheSame) {
  const Ran r = crossval("", {"--layers"});
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* part :
       {"interface of b8390", "4 tokens, all the same", "layer 4", "the same bits", "same: all numbers"})
    EXPECT_SAYS(r.out, part);
  const Json j = json_of(crossval("", {"--json"}));
  EXPECT_EQ(j["verdict"], "same");
  EXPECT_EQ(j["layers"].size(), 5u);
  EXPECT_EQ(j["logits"]["same_bits"], true);
  EXPECT_EQ(j["greedy"]["same"], 4);
  EXPECT_EQ(j["perplexity"]["ours"], j["perplexity"]["theirs"]);
  EXPECT_EQ(j["library"]["context_struct"], 136);
}

// --ctx is the length of a window, and each is a text of its own: its first token is not scored.
TEST_F(CrossvalCommand, ALongTextIsComparedInWindows) {
  const size_t tokens =
      json_of(gimbal({"tokenize", story_file("f32"), "--text", kVerdictText, "--json"}))["tokens"].size();
  ASSERT_GT(tokens, 16u) << "three windows";
  const Json j = json_of(crossval("", {"--no-layers", "--reference", "off", "--ctx", "8", "--json"}));
  EXPECT_EQ(j["verdict"], "same") << j;
  EXPECT_EQ(j["perplexity"]["tokens"], tokens - (tokens + 7) / 8);
  EXPECT_EQ(j["perplexity"]["ours"], j["perplexity"]["theirs"]);
  const Json whole = json_of(crossval("", {"--no-layers", "--reference", "off", "--json"}));
  EXPECT_EQ(whole["perplexity"]["tokens"], tokens - 1);
}

TEST_F(CrossvalCommand, FindsAWrongLogitWithBothValues) {
  const Ran r = crossval("logit", {"--no-layers", "--json"});
  EXPECT_EQ(r.code, 1) << r.out << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(j["verdict"], "different");
  EXPECT_EQ(j["logits"]["token"], 2);
  EXPECT_EQ(j["logits"]["value"], 7);
  EXPECT_NEAR(j["logits"]["theirs"].get<double>() - j["logits"]["ours"].get<double>(), 0.5, 1e-3);
  EXPECT_LT(j["logits"]["our_share"].get<double>(), 1);
  EXPECT_GT(j["logits"]["their_share"].get<double>(), 1);
  EXPECT_SAYS(j["reason"].get<std::string>(), "logits: value 7 of token 2 is");
  EXPECT_SAYS(j["reason"].get<std::string>(), "in the library");
  const Ran people = crossval("logit", {"--no-layers"});
  EXPECT_SAYS(people.out, " of what rounding explains (here ");
}

TEST_F(CrossvalCommand, FindsTheFirstLayerThatDiffers) {
  const Ran r = crossval("layer", {"--json"});
  EXPECT_EQ(r.code, 1) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(j["layers"][0]["same_bits"], true);
  EXPECT_EQ(j["layers"][1]["same_bits"], false);
  EXPECT_EQ(j["layers"][1]["value"], 3);
  EXPECT_SAYS(j["reason"].get<std::string>(), "layer 1: value 3 of token 1 is");
}

TEST_F(CrossvalCommand, AMarkAtAnotherValueIsNoDivergence) {
  const Json j = json_of(crossval("mark", {"--json"}));
  EXPECT_EQ(j["verdict"], "same");
  EXPECT_EQ(j["layers"][1]["same_bits"], false);
  EXPECT_SAYS(j["reason"].get<std::string>(), "marks another value as the output of layer 1");
}

TEST_F(CrossvalCommand, FindsOtherTokensAndVocabularies) {
  const Ran r = crossval("token");
  EXPECT_EQ(r.code, 1);
  EXPECT_SAYS(r.out, "number 4 is token");
  EXPECT_SAYS(r.out, "token 5 '");
  const Ran larger = crossval("vocabulary");
  EXPECT_EQ(larger.code, 1);
  EXPECT_SAYS(larger.out, "the vocabulary has 512 tokens here, and 520 in the library");
}

TEST_F(CrossvalCommand, WithoutAReferenceADifferenceIsUndecided) {
  const Ran r = crossval("logit", {"--no-layers", "--reference", "off"});
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_SAYS(r.out, "cannot compare: there is no reference");
  EXPECT_EQ(crossval("", {"--no-layers", "--reference", "off"}).code, 0);
}

// What ends the library's process ends no other.
TEST_F(CrossvalCommand, ACrashIsAReadableReason) {
  const Ran r = crossval("crash");
  EXPECT_EQ(r.code, 3) << r.err;
  for (const char* part :
       {"cannot compare: the library ", "ended its process", "computing", "GGML_ASSERT(rows == 7) failed"})
    EXPECT_SAYS(r.out, part);
  const Ran loading = crossval("crash-load", {"--json"});
  EXPECT_EQ(loading.code, 3);
  EXPECT_EQ(json_of(loading)["code"], "library-crashed");
  EXPECT_SAYS(json_of(loading)["reason"].get<std::string>(), "loading the model");
}

TEST_F(CrossvalCommand, ASilentLibraryIsStopped) {
  const Ran r = crossval("hang", {"--time-limit", "1", "--json"});
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_EQ(json_of(r)["code"], "library-silent");
  EXPECT_SAYS(json_of(r)["reason"].get<std::string>(), "did not answer within 1 s");
}

TEST_F(CrossvalCommand, AMadeUpGenerationIsRefused) {
  for (const auto& [ran, found] :
       {std::pair(crossval("", {}, llama_shim("larger")),
                  "found llama_model_params of 72 bytes and llama_context_params of 176"),
        {crossval("defaults"), "not b8390: n_ctx is 0x1000, not 0x200"}}) {
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_SAYS(
        ran.out,
        "cannot be used: its interface is of no known generation: expected the struct sizes of b3889");
    EXPECT_SAYS(ran.out, found);
    EXPECT_SAYS(ran.out, "/libllama.so");
    EXPECT_SAYS(ran.out, "give a libllama of one of these releases");
  }
}

TEST_F(CrossvalCommand, OtherFilesAreRefused) {
  const std::string text = temporary_path("libtext.so");
  ASSERT_TRUE(write_file(text, "no library"));
  const std::string cut = temporary_path("libcut.so");
  auto whole = read_file(llama_shim());
  ASSERT_TRUE(bool(whole));
  ASSERT_TRUE(write_file(cut, std::string_view(*whole).substr(0, whole->size() / 2)));
  for (const std::string& library : {text, cut, temporary_path("absent.so"), golden_dir()}) {
    const Ran r = crossval("", {}, library);
    EXPECT_EQ(r.code, 3) << library << r.err;
    EXPECT_SAYS(r.out, "the library " + library + " cannot be used: ");
  }
  const Ran other = crossval("", {}, "/lib/x86_64-linux-gnu/libz.so.1");
  if (std::filesystem::exists("/lib/x86_64-linux-gnu/libz.so.1")) {
    EXPECT_EQ(other.code, 3);
    EXPECT_SAYS(other.out, "found a library without llama_backend_init, llama_model_default_params");
  }
  EXPECT_EQ(gimbal({"crossval", story_file("f32")}).code, 2);
}

TEST_F(CrossvalCommand, AModelThatTheLibraryDoesNotLoadHasItsWords) {
  const Ran r = crossval("no-model");
  EXPECT_EQ(r.code, 3);
  EXPECT_SAYS(r.out, "does not load");
  EXPECT_SAYS(r.out, "unknown model architecture: 'made-up'");
}

TEST_F(CrossvalCommand, ItsChildIsNoCommandForUsers) {
  const Ran r = gimbal({"llama-worker"});
  EXPECT_EQ(r.code, 2);
  EXPECT_SAYS(r.err, "it is started by `gimbal crossval`");
}

}  // namespace
}  // namespace gimbal::test
