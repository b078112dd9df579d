// The end of what `gimbal doctor` prints: the sandbox of workers, and the next steps.
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

TEST(Doctor, PrintsTheSandboxOfThisKernel) {
  const Json tried = json_of(gimbal({"doctor", "--json"}))["sandbox"];
  expect_keys(tried, {"landlock", "in_force", "missing", "forbids", "allows"});
  EXPECT_EQ(tried["forbids"].size() + tried["allows"].size(), 6u) << tried;
  const std::string text = gimbal({"doctor"}).out;
  EXPECT_SAYS(text, "\nSandbox of a worker on the CPU (");
  for (const Json& act : tried["forbids"]) EXPECT_SAYS(text, act.get<std::string>());
  EXPECT_EQ(text.find("  missing: ") != std::string::npos, !tried["missing"].empty()) << text;
}

}  // namespace
}  // namespace gimbal::test
