// Where numbers are written: an output replaces what was there when it is complete, never before, and is
// never what is read.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

std::string model_copy(const std::string& name) {
  const std::string path = temporary_path(name);
  EXPECT_TRUE(write_file(path, *read_file(story_file("q8_0"))));
  return path;
}

TEST(Output, TheModelIsNeverTheOutput) {
  const std::string model = model_copy("both.gguf"), link = temporary_path("link.gguf"),
                    hard = temporary_path("hard.gguf");
  ASSERT_EQ(symlink(model.c_str(), link.c_str()), 0);
  fs::create_hard_link(model, hard);
  const std::string before = *read_file(model);
  for (const std::string& out : {model, link, hard}) {
    Ran r = gimbal({"logits", model, "--tokens", "1,2", "-o", out});
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_SAYS(r.err, "is the file that is read");
    EXPECT_EQ(*read_file(model), before) << out;
  }
}

TEST(Output, AFailureKeepsWhatWasThere) {
  const std::string keep = temporary_path("keep");
  ASSERT_TRUE(write_file(keep, "precious"));
  for (const Args& args : {Args{"--tokens", "1,99999"}, Args{"--tokens", "1,2", "--positions", "7"},
                           Args{"no-such-model", "--tokens", "1"}}) {
    Args all{"logits", "-o", keep};
    all.insert(all.end(), args.begin(), args.end());
    gimbal(all);
    EXPECT_EQ(*read_file(keep), "precious") << args[0] << " " << args[1];
  }
  int files = 0;
  for (const auto& f : fs::directory_iterator(fs::path(keep).parent_path()))
    files += f.path().string().starts_with(keep);
  EXPECT_EQ(files, 1) << "and no draft beside it";
}

TEST(Output, ReplacesTheFileAndKeepsLinksAndModes) {
  const std::string out = temporary_path("out.f32"), link = temporary_path("link.f32");
  ASSERT_TRUE(write_file(out, "old"));
  ASSERT_EQ(chmod(out.c_str(), 0600), 0);
  ASSERT_EQ(symlink(out.c_str(), link.c_str()), 0);
  EXPECT_EQ(gimbal({"logits", "--tokens", "1,2", "-o", link}).code, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::file_size(out), 512u * 4);
  EXPECT_EQ(fs::status(out).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Output, PipesAndDevicesAreWrittenAsTheyAre) {
  const std::string wanted = gimbal({"logits", "--tokens", "1,2", "-o", "-"}).out;
  EXPECT_EQ(wanted.size(), 512u * 4);
  EXPECT_EQ(gimbal({"logits", "--tokens", "1,2", "-o", "/dev/stdout"}).out, wanted);
  EXPECT_EQ(gimbal({"logits", "--tokens", "1,2", "-o", "/dev/null"}).code, 0);
  const std::string file = temporary_path("stdout.f32");
  EXPECT_EQ(gimbal({"logits", "--tokens", "1,2", "-o", "/dev/stdout"}, {.stdout_path = file}).code, 0);
  EXPECT_EQ(*read_file(file), wanted);
}

TEST(Output, DequantizeDoesNotWriteOverItsInput) {
  const std::string blocks = temporary_path("blocks");
  const std::string bytes(36000, 'b');
  ASSERT_TRUE(write_file(blocks, bytes));
  Ran r = gimbal({"dequantize", "--type", "q4_0", "--input", blocks, "-o", blocks});
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_EQ(*read_file(blocks), bytes);
  const std::string out = temporary_path("values");
  EXPECT_EQ(gimbal({"dequantize", "--type", "q4_0", "--input", blocks, "-o", out}).code, 0);
  EXPECT_EQ(fs::file_size(out), 36000u / 18 * 32 * 4);
  Ran piped = gimbal({"dequantize", "--type", "q4_0", "--input", "-", "-o", "-"}, {.input = bytes});
  EXPECT_EQ(piped.out, *read_file(out)) << piped.err;
  // A report would stand among the values.
  Ran reported =
      gimbal({"dequantize", "--type", "q4_0", "--input", "-", "-o", "-", "--json"}, {.input = bytes});
  EXPECT_EQ(reported.out, piped.out) << reported.err;
  EXPECT_EQ(
      json_of(gimbal({"dequantize", "--type", "q4_0", "--input", blocks, "-o", out, "--json"}))["values"],
      64000);
}

TEST(Output, AFileThatMayNotGrowIsAnErrorAndNoSignal) {
  const std::string out = temporary_path("large.f32");
  Ran r = gimbal({"logits", "--tokens", "1,2", "-o", out}, {.limits = "-f 0"});
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_SAYS(r.err, "File too large");
  const std::string home = temporary_path("new-home");
  ASSERT_EQ(mkdir(home.c_str(), 0700), 0);
  Ran run = gimbal({"run", "-p", "Once upon a time", "-n", "2", "--greedy"},
                   {.environment = {{"HOME", home}}, .limits = "-f 0"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, ", there\n");
  EXPECT_SAYS(run.err, "File too large");
  for (const auto& f : fs::recursive_directory_iterator(home)) EXPECT_FALSE(f.is_regular_file()) << f.path();
}

}  // namespace
}  // namespace gimbal::test
