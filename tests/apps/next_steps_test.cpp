// What `gimbal doctor` says to do next.
#include "support/cli.h"

namespace gimbal::test {
namespace {

// The last lines, with these models in a folder.
std::string next_of(const std::vector<std::string>& models) {
  RunSetup setup;
  setup.folder = temporary_path("next-steps");
  std::filesystem::remove_all(setup.folder);
  std::filesystem::create_directories(setup.folder);
  for (const std::string& name : models)
    std::filesystem::copy_file(story_file("q8_0"), setup.folder + "/" + name + ".gguf");
  const Ran r = gimbal({"doctor"}, setup);
  EXPECT_EQ(r.code, 0) << r.err;
  const size_t at = r.out.find("\nWhat to do next\n");
  EXPECT_NE(at, std::string::npos) << r.out;
  return at == std::string::npos ? "" : r.out.substr(at);
}

TEST(NextSteps, WithoutAModelTheOneInside) {
  const std::string next = next_of({});
  EXPECT_SAYS(next, "  gimbal run -p \"Once upon a time\"");
  EXPECT_SAYS(next, "  gimbal serve ");
}

TEST(NextSteps, WithAModelItsName) {
  const std::string next = next_of({"a model's file"});
  EXPECT_SAYS(next, "  gimbal run 'a model'\\''s file'");
  EXPECT_SAYS(next, "a model that fits (of 1 found here)");
}

TEST(NextSteps, InJsonToo) {
  const Json next = json_of(gimbal({"doctor", "--json"}))["next"];
  ASSERT_GE(next.size(), 2u);
  for (const Json& step : next) expect_keys(step, {"command", "why"});
}

}  // namespace
}  // namespace gimbal::test
