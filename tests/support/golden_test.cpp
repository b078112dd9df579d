// The helpers that find and decode reference data: when they err, every other test means nothing.
#include "support/golden.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gimbal::test {
namespace {

// RFC 4648, section 10.
TEST(GoldenFiles, Base64FollowsTheRfc) {
  EXPECT_EQ(base64_decode(""), "");
  EXPECT_EQ(base64_decode("Zg=="), "f");
  EXPECT_EQ(base64_decode("Zm8="), "fo");
  EXPECT_EQ(base64_decode("Zm9vYmFy"), "foobar");
  EXPECT_EQ(base64_decode("+/8="), "\xfb\xff");
}

TEST(GoldenFiles, Base64FloatsAreLittleEndian) {
  EXPECT_EQ(base64_floats("AACAPwAAAMA="), (std::vector<float>{1.0f, -2.0f}));
}

TEST(GoldenFiles, GunzipGivesTheWholeFile) {
  std::string text(1 << 20, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = char(i * i >> 7);
  std::string path = temporary_path("text.gz");
  gzFile out = gzopen(path.c_str(), "wb");
  ASSERT_TRUE(out);
  ASSERT_EQ(gzwrite(out, text.data(), unsigned(text.size())), int(text.size()));
  ASSERT_EQ(gzclose(out), Z_OK);
  EXPECT_TRUE(gunzip_file(path) == text);
}

TEST(GoldenDeathTest, ATruncatedArchiveEndsTheTest) {
  std::string whole = gunzip_file(golden_files("vocab", ".gguf.gz").front());
  EXPECT_EQ(whole.substr(0, 4), "GGUF");
  std::string source = golden_files("vocab", ".gguf.gz").front(), cut = temporary_path("cut.gz");
  std::filesystem::copy_file(source, cut);
  std::filesystem::permissions(cut, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  EXPECT_EXIT(gunzip_file(cut), testing::ExitedWithCode(1), "does not unpack");
}

TEST(GoldenDeathTest, AMissingFileEndsTheTest) {
  EXPECT_EXIT(read_json("/nowhere/x.json"), testing::ExitedWithCode(1), "cannot read '/nowhere/x.json'");
}

TEST(GoldenFiles, FilesAreSortedPathsAndNoneIsAFailure) {
  auto files = golden_files("stories", ".gguf");
  EXPECT_EQ(files.size(), 4u);
  EXPECT_TRUE(std::is_sorted(files.begin(), files.end()));
  for (const auto& file : files) EXPECT_TRUE(std::filesystem::is_regular_file(file)) << file;
  EXPECT_NONFATAL_FAILURE(golden_files("stories", ".no-such-suffix"), "no reference data");
  EXPECT_NONFATAL_FAILURE(golden_files("no-such-folder", ".gguf"), "no reference data");
}

TEST(GoldenFiles, JsonKeepsTheOrderOfItsKeys) {
  std::string path = temporary_path("order.json");
  std::ofstream(path) << R"({"zebra": 1, "ant": 2})";
  EXPECT_EQ(read_json(path).begin().key(), "zebra");
}

}  // namespace
}  // namespace gimbal::test
