// What appears on a terminal only: progress bars, and what Ctrl-C leaves of them; columns under bold
// headings.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/on_terminal.h"

namespace gimbal::test {
namespace {

TEST(Terminal, CtrlCTakesTheBarAway) {
  NEEDS_A_TERMINAL();
  const std::pair<Args, const char*> commands[] = {
      {{"verify", "-t", "1"}, "verifying ["},
      {{"bench", "-p", "4000", "-n", "0", "-r", "100", "-t", "1", "--verify", "never", "--ctx", "4001"},
       "measuring ["},
      {{"bench", "--kernels", "-t", "1", "--milliseconds", "500", "--megabytes", "1"}, "measuring ["}};
  for (const auto& [args, bar] : commands) {
    const Seen s = on_terminal(args, {{bar, "\003"}});
    EXPECT_SAYS(s.text, bar);
    EXPECT_EQ(s.code, 128 + SIGINT);
    const std::string end = "\r\033[K";
    EXPECT_EQ(s.text.substr(s.text.size() - std::min(s.text.size(), end.size())), end)
        << args[0] << " leaves: " << s.text.substr(s.text.rfind('\r'));
  }
}

// After an interrupt the command keeps the results so far.
TEST(Terminal, ATextThatIsReadHasABar) {
  NEEDS_A_TERMINAL();
  std::string text;
  for (int i = 0; i < 30000; i++)
    text +=
        format("Once upon a time there were {} little dogs. They ran to the big tree and saw a bird. ", i);
  const std::string file = temporary_path("long.txt"), out = temporary_path("bar.imatrix.gguf");
  ASSERT_TRUE(write_file(file, text));
  const Seen s =
      on_terminal({"imatrix", story_file("f32"), "--text", file, "--context", "64", "-o", out, "-t", "1"},
                  {{"reading [", "\003"}, {" tokens\033[K", ""}, {"interrupted: --merge", ""}});
  EXPECT_EQ(s.code, 128 + SIGINT) << s.text;
  EXPECT_TRUE(std::filesystem::exists(out));
}

TEST(Terminal, ProgressCountsWhatIsDone) {
  NEEDS_A_TERMINAL();
  const Seen some = on_terminal({"verify", "--kernel", "*mat_mul*", "-t", "1"});
  EXPECT_EQ(some.code, 0);
  EXPECT_SAYS(some.text, " kernels\033[K");
  EXPECT_FALSE(contains(some.text, " B of "));
  // The bar is about the kernels that were asked for: it comes near to its end.
  double last = 0;
  for (size_t at = 0; (at = some.text.find("] ", at)) != std::string::npos; at++)
    last = atof(some.text.c_str() + at + 2);
  EXPECT_GT(last, 90);
}

TEST(Terminal, HeadingsStandOverTheirColumns) {
  NEEDS_A_TERMINAL();
  const Seen s = on_terminal({"models"});
  std::string plain;
  for (size_t i = 0; i < s.text.size(); i++) {
    if (s.text[i] == '\033') i = s.text.find('m', i);
    else if (s.text[i] != '\r') plain += s.text[i];
  }
  const size_t second = plain.find('\n') + 1;
  ASSERT_NE(second, 0u);
  EXPECT_EQ(plain.find("ARCHITECTURE"), plain.find("llama", second) - second) << plain;
  EXPECT_EQ(plain.find("FROM"), plain.find("inside the program", second) - second) << plain;
}

TEST(Terminal, RemovesAFileOnlyAfterAYes) {
  NEEDS_A_TERMINAL();
  const std::string path = temporary_path("own.gguf");
  std::ofstream(path) << "weights";
  for (const char* no : {"n\r", "\r", "no y\r"}) {
    const Seen kept = on_terminal({"rm", path, "--force"}, {{"[y/N] ", no}});
    EXPECT_SAYS(kept.text, "nothing was removed");
    EXPECT_TRUE(std::filesystem::exists(path)) << no;
  }
  const Seen gone = on_terminal({"rm", path, "--force"}, {{"[y/N] ", "y\r"}});
  EXPECT_EQ(gone.code, 0) << gone.text;
  EXPECT_FALSE(std::filesystem::exists(path)) << gone.text;
}

// The receipt of an answer is of that answer alone. The second line begins like the first one only with the
// token that begins every text, so the same steps compute it: nothing else is shared.
TEST(Terminal, StatsAreOfTheLastAnswer) {
  NEEDS_A_TERMINAL();
  const Seen s = on_terminal(
      {"run", "-n", "6", "--greedy", "-t", "1", "--stats"},
      {{"> ", "Once upon\r"}, {"seed", ""}, {"> ", "There was\r"}, {"seed", ""}, {"> ", "/quit\r"}});
  EXPECT_EQ(s.code, 0) << s.text;
  std::vector<Args> counts(1);  // of each receipt: "30 x mat_mul ..." and its like
  for (size_t at = 0, end; (end = s.text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = s.text.substr(at, end - at);
    if (contains(line, "finish")) counts.emplace_back();
    else if (contains(line, " x ")) counts.back().push_back(line);
  }
  ASSERT_EQ(counts.size(), 3u) << s.text;
  EXPECT_GT(counts[0].size(), 3u) << s.text;
  EXPECT_EQ(counts[0], counts[1]);
}

}  // namespace
}  // namespace gimbal::test
