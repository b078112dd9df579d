// What a prompt may come from, how long it may be, and how its computation is ended: the program from
// outside.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

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
                 {.interrupt_when_heard = true});
  EXPECT_EQ(r.code, 130) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(j["finish"], "cancelled");
  EXPECT_EQ(j["tokens"].size(), 0u) << "nothing was generated: it ended in the prompt";
}

TEST(Prompt, MayStandBehindTheModel) {
  const std::string expected = gimbal({"run", "-p", "Once upon a time", "-n", "5", "--greedy"}).out;
  EXPECT_EQ(gimbal({"run", "default", "Once upon a time", "-n", "5", "--greedy"}).out, expected);
  EXPECT_EQ(gimbal({"run", "-m", "default", "-p", "Once upon a time", "-n", "5", "--greedy"}).out, expected);
  Ran alone = gimbal({"run", "Once upon a time"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_SAYS(alone.err, "to use it as the prompt, write -p 'Once upon a time'");
  EXPECT_SAYS(gimbal({"run", "default", "Once", "-p", "x"}).err, "there is a prompt already");
}

TEST(Prompt, AnEmptyModelNameIsAnError) {
  for (const Args& args : {Args{"run", "", "-p", "Once"}, Args{"info", ""}, Args{"info", "--model", ""}}) {
    Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << args[0];
    EXPECT_SAYS(r.err, "MODEL is empty");
  }
}

TEST(Prompt, ComesOutOfPipesAndFilesOfUnknownSize) {
  const std::string expected = gimbal({"run", "-p", "Once upon a time", "-n", "5", "--greedy"}).out;
  EXPECT_EQ(gimbal({"run", "-f", "/dev/stdin", "-n", "5", "--greedy"}, {.input = "Once upon a time\n"}).out,
            expected);
  const std::string fifo = temporary_path("prompt.fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { EXPECT_TRUE(write_file(fifo, "Once upon a time")); });
  EXPECT_EQ(gimbal({"run", "-f", fifo, "-n", "5", "--greedy"}).out, expected);
  writer.join();
  Ran version = gimbal({"tokenize", "--file", "/proc/version", "--ids"});
  EXPECT_GT(version.out.size(), 20u) << "the system reports its size as 0";
  EXPECT_SAYS(gimbal({"run", "-f", "/tmp"}).err, "is a folder");
}

TEST(Prompt, WhatNoContextCanHoldIsNotReadToTheEnd) {
  Ran r = gimbal({"run", "-n", "1", "-f", "/dev/zero"});
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_SAYS(r.err, "the most that can be used here");
}

TEST(Prompt, NoTokensIsSaidAsSuch) {
  EXPECT_SAYS(gimbal({"run", "--tokens", ""}).err, "--tokens needs at least one token id");
}

}  // namespace
}  // namespace gimbal::test
