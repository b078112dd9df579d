// Texts with pictures on the command line: tokenize, logits, run, plan and explain with --mmproj and --image.
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "media/golden_pictures.h"
#include "support/cli.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

using Json = nlohmann::ordered_json;

std::string in_vision(const Json& name) { return golden_dir() + "/vision/" + name.get<std::string>(); }

// The command with the model and pictures of a case, and more arguments.
Ran with_pictures(const char* command, const Json& golden, const Json& k, std::vector<std::string> more) {
  std::vector<std::string> all = {command, in_vision(golden["text"]), "--mmproj",
                                  in_vision(golden["mmproj"])};
  for (const std::string image : k["images"])
    all.insert(all.end(), {image.ends_with(".wav") ? "--audio" : "--image", golden_picture(image)});
  all.insert(all.end(), more.begin(), more.end());
  return gimbal(all);
}

std::vector<float> floats_of(const std::string& path) {
  const auto bytes = read_file(path);
  EXPECT_TRUE(bytes);
  std::vector<float> all(bytes ? bytes->size() / sizeof(float) : 0);
  if (bytes) std::memcpy(all.data(), bytes->data(), all.size() * sizeof(float));
  return all;
}

class CliVision : public ::testing::TestWithParam<const char*> {};

TEST_P(CliVision, TokensLogitsAndAnswersAreTheReferences) {
  const Json golden = read_json(golden_dir() + "/vision/" + GetParam() + ".json");
  const Json& k = golden["cases"][0];
  const std::string prompt = k["prompt"];
  const Ran tokens = with_pictures("tokenize", golden, k, {"--text", prompt, "--json"});
  ASSERT_EQ(tokens.code, 0) << tokens.err;
  const Json t = Json::parse(tokens.out);
  EXPECT_EQ(t["chunks"], k["chunks"]);
  EXPECT_EQ(nlohmann::json(t["pieces"]), nlohmann::json(k["pieces"])) << "in any order of their members";
  EXPECT_EQ(t["rows"], k["rows"]);
  EXPECT_EQ(t["next_position"], k["next_position"]);

  std::string positions;
  for (const int row : k["logit_rows"]) positions += (positions.empty() ? "" : ",") + std::to_string(row);
  const std::string one = temporary_path("one.f32"), two = temporary_path("two.f32");
  const Ran whole =
      with_pictures("logits", golden, k,
                    {"--prompt", prompt, "--positions", positions, "--kv-type", "f32", "-t", "1", "-o", one});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const Ran cut = with_pictures("logits", golden, k,
                                {"--prompt", prompt, "--positions", positions, "--kv-type", "f32", "-t", "2",
                                 "--batch", "5", "-o", two});
  ASSERT_EQ(cut.code, 0) << cut.err;
  const std::vector<float> want = base64_floats(k["logits_ref64"]), got = floats_of(one);
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(got, floats_of(two)) << "other bits with other threads and batches";
  double most = 0;
  for (size_t i = 0; i < got.size(); i++) most = std::max(most, std::fabs(double(got[i]) - double(want[i])));
  EXPECT_LE(most, golden["tolerance"]["logits"].get<double>());

  const Ran answer = with_pictures(
      "run", golden, k,
      {"-p", prompt, "--raw", "--greedy", "--ignore-eos", "-n", "12", "--print-tokens", "--kv-type", "f32"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json ids = Json::parse("[" + answer.out + "]");
  for (size_t i = 0; i < k["greedy"].size() && k["greedy_margins"][i].get<double>() >= 0.05; i++)
    EXPECT_EQ(ids[i], k["greedy"][i]) << "token " << i;
}

INSTANTIATE_TEST_SUITE_P(Families, CliVision,
                         ::testing::Values("gemma3", "idefics3", "qwen2vl", "qwen3vl", "ultravox"));

TEST(CliVisionPlan, HasTheEncoder) {
  const std::string text = golden_dir() + "/vision/text-gemma3.gguf",
                    mmproj = golden_dir() + "/vision/mmproj-gemma3.gguf";
  const Ran plan = gimbal({"plan", text, "--mmproj", mmproj, "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Json p = Json::parse(plan.out);
  EXPECT_GT(p["image"]["devices"][0]["weights"].get<int64_t>(), 50'000);
  EXPECT_GT(p["image"]["devices"][0]["activations"].get<int64_t>(), 0);
  const Ran explain = gimbal({"explain", text, "--mmproj", mmproj, "--json"});
  ASSERT_EQ(explain.code, 0) << explain.err;
  EXPECT_GT(Json::parse(explain.out)["image"]["buckets"][0]["ops"].size(), 20u);
}

TEST(CliVisionErrors, AContextThatIsTooSmallIsNamedWithTheRows) {
  const std::string folder = golden_dir() + "/vision/", text = folder + "text-gemma3.gguf";
  const Args input = {"--mmproj", folder + "mmproj-gemma3.gguf", "--image", golden_picture("photo.png")};
  Args tokenize = {"tokenize", text, "--text", "a", "--json"},
       run = {"run", text, "-p", "a", "--raw", "--ctx", "8"};
  tokenize.insert(tokenize.end(), input.begin(), input.end()),
      run.insert(run.end(), input.begin(), input.end());
  const Ran tokens = gimbal(tokenize), refused = gimbal(run);
  ASSERT_EQ(tokens.code, 0) << tokens.err;
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err,
              "have " + Json::parse(tokens.out)["rows"].dump() + " rows, but the context has 8 positions");
}

TEST(CliVisionErrors, SayWhatIsWrong) {
  const std::string folder = golden_dir() + "/vision/", text = folder + "text-gemma3.gguf",
                    mmproj = folder + "mmproj-gemma3.gguf", photo = golden_picture("photo.png");
  const struct {
    std::vector<std::string> arguments;
    const char* part;
  } cases[] = {
      {{"run", text, "--image", photo, "-p", "a"}, "--mmproj"},
      {{"run", text, "--mmproj", folder + "mmproj-qwen3vl.gguf", "--image", photo, "-p", "a"}, "values"},
      {{"run", text, "--mmproj", text, "--image", photo, "-p", "a"}, "projector"},
      {{"run", mmproj, "-p", "a"}, "mmproj"},
      {{"tokenize", text, "--mmproj", mmproj, "--image", photo, "--text", "a", "--no-bos"}, "not for a text"},
      {{"tokenize", text, "--mmproj", mmproj, "--image", photo, "--text", "a", "--no-special"},
       "not for a text"},
      {{"run", text, "--mmproj", mmproj, "--image", photo, "-p", "<__media__> <__media__>"}, "marks"},
      {{"run", text, "--mmproj", mmproj, "--image", photo, "--ctx", "8", "-p", "a"}, "context"},
      {{"run", text, "--mmproj", mmproj, "--image", golden_picture("bad-cut.png"), "-p", "a"}, "bad-cut.png"},
      {{"run", text, "--mmproj", mmproj, "--image", "data:image/png;base64,!", "-p", "a"}, "base64"},
  };
  for (const auto& c : cases) {
    const Ran r = gimbal(c.arguments);
    EXPECT_TRUE(r.code >= 1 && r.code <= 3) << r.code << r.err;
    EXPECT_NE(r.err.find("error:"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(c.part), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace gimbal::test
