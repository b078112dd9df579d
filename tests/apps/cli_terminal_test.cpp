// What appears on a terminal only: progress bars, and what Ctrl-C leaves of them; columns under bold
// headings.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cli.h"

namespace gimbal::test {
namespace {

struct Seen {
  std::string text;  // what arrived at the terminal
  int status = 0;    // of waitpid()
};

// What is typed once `after` was seen, behind what was seen before.
struct Typed {
  std::string after, keys;
};

// Runs the program on a terminal of its own.
Seen on_terminal(Args args, const std::vector<Typed>& script = {}) {
  Seen seen;
  const char* program = std::getenv("GIMBAL");
  if (!program) {
    ADD_FAILURE() << "the environment variable GIMBAL must name the program (ctest sets it)";
    return seen;
  }
  std::vector<char*> argv{const_cast<char*>(program)};
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  winsize size{50, 200, 0, 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    for (const auto& [name, value] : quiet_home())
      if (value.empty()) unsetenv(name.c_str());
      else setenv(name.c_str(), value.c_str(), 1);
    setenv("TERM", "xterm", 1), unsetenv("NO_COLOR");
    execv(program, argv.data());
    _exit(127);
  }
  EXPECT_GT(child, 0);
  size_t typed = 0, from = 0;
  char piece[4096];
  // Up to two minutes for each piece, and until the other end is closed.
  for (pollfd p{terminal, POLLIN, 0}; poll(&p, 1, 120000) > 0;) {
    const ssize_t n = read(terminal, piece, sizeof piece);
    if (n <= 0) break;
    seen.text.append(piece, size_t(n));
    for (size_t at;
         typed < script.size() && (at = seen.text.find(script[typed].after, from)) != std::string::npos;) {
      from = at + script[typed].after.size();
      const std::string& keys = script[typed++].keys;
      EXPECT_EQ(write(terminal, keys.data(), keys.size()), ssize_t(keys.size()));
    }
  }
  EXPECT_EQ(typed, script.size()) << "what was waited for did not come: " << seen.text;
  kill(child, SIGKILL);  // no effect on one that has ended
  while (waitpid(child, &seen.status, 0) < 0 && errno == EINTR) continue;
  close(terminal);
  return seen;
}

TEST(Terminal, CtrlCTakesTheBarAway) {
  const std::pair<Args, const char*> commands[] = {
      {{"verify", "-t", "1"}, "verifying ["},
      {{"bench", "-p", "4000", "-n", "0", "-r", "100", "-t", "1", "--verify", "never"}, "measuring ["},
      {{"bench", "--kernels", "-t", "1", "--milliseconds", "500", "--megabytes", "1"}, "measuring ["}};
  for (const auto& [args, bar] : commands) {
    const Seen s = on_terminal(args, {{bar, "\003"}});
    EXPECT_SAYS(s.text, bar);
    EXPECT_TRUE(WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGINT) << s.status;
    const std::string end = "\r\033[K";
    EXPECT_EQ(s.text.substr(s.text.size() - std::min(s.text.size(), end.size())), end)
        << args[0] << " leaves: " << s.text.substr(s.text.rfind('\r'));
  }
}

TEST(Terminal, ProgressCountsWhatIsDone) {
  const Seen some = on_terminal({"verify", "--kernel", "*mat_mul*", "-t", "1"});
  EXPECT_TRUE(WIFEXITED(some.status) && WEXITSTATUS(some.status) == 0);
  EXPECT_SAYS(some.text, " kernels\033[K");
  EXPECT_FALSE(contains(some.text, " B of "));
  // The bar is about the kernels that were asked for: it comes near to its end.
  double last = 0;
  for (size_t at = 0; (at = some.text.find("] ", at)) != std::string::npos; at++)
    last = atof(some.text.c_str() + at + 2);
  EXPECT_GT(last, 90);
}

TEST(Terminal, HeadingsStandOverTheirColumns) {
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

// The receipt of an answer is of that answer alone.
TEST(Terminal, StatsAreOfTheLastAnswer) {
  const Seen s = on_terminal(
      {"run", "-n", "6", "--greedy", "-t", "1", "--stats"},
      {{"> ", "Once upon\r"}, {"seed", ""}, {"> ", "Once upon\r"}, {"seed", ""}, {"> ", "/quit\r"}});
  EXPECT_TRUE(WIFEXITED(s.status) && WEXITSTATUS(s.status) == 0) << s.text;
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
