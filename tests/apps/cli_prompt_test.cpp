// What a prompt may come from, how long it may be, and how its computation is ended: the program from
// outside.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/cli.h"

namespace gimbal::test {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; i++) all += text;
  return all;
}

TEST(Prompt, CtrlCIsHeardBetweenItsBatches) {
  // About 60,000 tokens: seconds to minutes of attention. The whole of it must not be waited for.
  const std::string prompt = temporary_path("long.txt");
  ASSERT_TRUE(write_file(prompt, repeated("The dog ran to the big tree. ", 7000)));
  Ran r = gimbal({"run", "-f", prompt, "--ctx", "100000", "-n", "1", "--greedy", "-t", "1", "--json"},
                 {.interrupt_after_ms = 5000});
  EXPECT_EQ(r.code, 130) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(j["finish"], "cancelled");
  EXPECT_EQ(j["tokens"].size(), 0u) << "nothing was generated: it ended in the prompt";
}

}  // namespace
}  // namespace gimbal::test
