// Files whose writing is interrupted, by the process or by its death, are continued with the same bytes; what
// is damaged, or of another file, is begun anew.
#include "base/growing_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "support/golden.h"

namespace gimbal {
namespace {

using test::temporary_path;
using Found = GrowingFile::Found;

constexpr size_t kPieceBytes = 100;

std::string contents(char kind) {
  std::string all = format("head of {}\n", kind);
  for (int i = 0; all.size() < 1000; i++) all += char('a' + (i * i + kind) % 26);
  return all;
}

// Writes in chunks of 7 bytes up to `end`. Returns the number of bytes that came from an earlier run.
uint64_t write_until(GrowingFile& part, const std::string& all, size_t end, Found expected) {
  const auto found = part.begin(all.data(), 10);
  EXPECT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, expected);
  for (size_t at = 0; at < end; at += 7) {
    const size_t n = std::min<size_t>(7, end - at);
    EXPECT_EQ(part.holds(n), at + n <= part.kept());
    // The caller need not have what the part holds.
    const std::string piece = part.holds(n) ? std::string(n, '?') : all.substr(at, n);
    EXPECT_TRUE(part.write(piece.data(), n));
  }
  return part.kept();
}

void interrupted_run(const std::string& path, const std::string& all, size_t end, Found expected) {
  auto part = GrowingFile::open(path, kPieceBytes);
  ASSERT_TRUE(part) << part.error().message;
  write_until(*part, all, end, expected);
}

TEST(GrowingFiles, AreContinuedWithTheSameBytes) {
  const std::string path = temporary_path("whole"), all = contents('x');
  interrupted_run(path, all, 333, Found::Nothing);
  EXPECT_FALSE(std::filesystem::exists(path)) << "a part is not the file";
  interrupted_run(path, all, 334, Found::Same);
  {
    auto part = GrowingFile::open(path, kPieceBytes);
    ASSERT_TRUE(part);
    EXPECT_EQ(write_until(*part, all, all.size(), Found::Same), 334u) << "of the run before, to the byte";
    ASSERT_TRUE(part->commit());
  }
  EXPECT_EQ(*read_file(path), all);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  EXPECT_FALSE(std::filesystem::exists(path + ".part.log"));
}

// A killed process writes nothing more: whole pieces remain.
TEST(GrowingFiles, SurviveTheDeathOfTheProcess) {
  const std::string path = temporary_path("killed"), all = contents('k');
  EXPECT_EXIT(
      {
        auto part = GrowingFile::open(path, kPieceBytes);
        write_until(*part, all, 450, Found::Nothing);
        raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  auto part = GrowingFile::open(path, kPieceBytes);
  ASSERT_TRUE(part);
  EXPECT_EQ(write_until(*part, all, all.size(), Found::Same), 400u);
  ASSERT_TRUE(part->commit());
  EXPECT_EQ(*read_file(path), all);
}

TEST(GrowingFiles, DamagedAndOtherOnesAreBegunAnew) {
  const std::string path = temporary_path("damaged"), part_path = path + ".part",
                    log_path = part_path + ".log";
  const std::string all = contents('d');
  const auto finishes = [&](Found expected, const char* what) {
    auto part = GrowingFile::open(path, kPieceBytes);
    ASSERT_TRUE(part) << what;
    EXPECT_EQ(write_until(*part, all, all.size(), expected), 0u) << what;
    ASSERT_TRUE(part->commit()) << what;
    EXPECT_EQ(*read_file(path), all) << what;
  };
  interrupted_run(path, contents('o'), 500, Found::Nothing);
  finishes(Found::Other, "another file");
  for (size_t at : {size_t(3), size_t(150), size_t(499)}) {
    interrupted_run(path, all, 500, Found::Nothing);
    std::string bytes = *read_file(part_path);
    bytes[at] ^= 1;
    ASSERT_TRUE(write_file(part_path, bytes));
    finishes(Found::Damaged, "a changed byte");
  }
  interrupted_run(path, all, 500, Found::Nothing);
  ASSERT_TRUE(write_file(part_path, read_file(part_path)->substr(0, 499)));
  finishes(Found::Damaged, "a part that lost its end");
  for (const std::string& log : {std::string("gimbal part 2\n"), std::string("gimbal part 1\nx\n"),
                                 std::string("gimbal part 1\n0 0000000000000000\n"),
                                 std::string("gimbal part 1\n99999999999999999999 0\n")}) {
    interrupted_run(path, all, 500, Found::Nothing);
    ASSERT_TRUE(write_file(log_path, log));
    finishes(Found::Damaged, "a log that is none");
  }
  interrupted_run(path, all, 500, Found::Nothing);
  ASSERT_TRUE(write_file(log_path, ""));
  finishes(Found::Nothing, "no log");
}

// The process died while it wrote the last line.
TEST(GrowingFiles, ATornLineOfTheLogIsIgnored) {
  const std::string path = temporary_path("torn"), all = contents('t');
  interrupted_run(path, all, 500, Found::Nothing);
  const std::string log = *read_file(path + ".part.log");
  ASSERT_TRUE(write_file(path + ".part.log", log.substr(0, log.size() - 5)));
  auto part = GrowingFile::open(path, kPieceBytes);
  ASSERT_TRUE(part);
  EXPECT_EQ(write_until(*part, all, 400, Found::Same), 400u);
  part->drop();
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(GrowingFiles, OneProcessWritesAtATime) {
  const std::string path = temporary_path("locked");
  auto first = GrowingFile::open(path);
  ASSERT_TRUE(first);
  const auto second = GrowingFile::open(path);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process"), std::string::npos) << second.error().message;
  EXPECT_FALSE(GrowingFile::open("/no/such/folder/file"));
}

// A writer that is refused leaves the part of the other one alone.
TEST(GrowingFiles, TheSecondWriterSpoilsNothing) {
  const std::string path = temporary_path("spoilt"), all = contents('s');
  auto first = GrowingFile::open(path, kPieceBytes);
  ASSERT_TRUE(first);
  write_until(*first, all, 500, Found::Nothing);
  for (int i = 0; i < 2; i++) {
    EXPECT_FALSE(GrowingFile::open(path, kPieceBytes));
    EXPECT_EQ(*read_file(path + ".part"), all.substr(0, 500));
    EXPECT_TRUE(std::filesystem::exists(path + ".part.log"));
  }
  for (size_t at = 500; at < all.size(); at++) { ASSERT_TRUE(first->write(&all[at], 1)); }
  ASSERT_TRUE(first->commit());
  EXPECT_EQ(*read_file(path), all);
}

// A run that ends before it begins leaves the earlier run's part.
TEST(GrowingFiles, WhatNeverBeganLosesNothing) {
  const std::string path = temporary_path("not-begun"), all = contents('n');
  {
    auto first = GrowingFile::open(path, kPieceBytes);
    ASSERT_TRUE(first);
    write_until(*first, all, 500, Found::Nothing);
  }
  const auto kept = read_file(path + ".part");
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, all.substr(0, 500));
  { ASSERT_TRUE(GrowingFile::open(path, kPieceBytes)); }
  EXPECT_EQ(*read_file(path + ".part"), *kept);
  EXPECT_TRUE(std::filesystem::exists(path + ".part.log"));
  { ASSERT_TRUE(GrowingFile::open(path + "2", kPieceBytes)); }
  EXPECT_FALSE(std::filesystem::exists(path + "2.part"));
}

// As DraftFile: the file behind a link, with its permissions.
TEST(GrowingFiles, ReplaceTheFileBehindALink) {
  namespace fs = std::filesystem;
  const std::string path = temporary_path("behind"), link = temporary_path("link");
  ASSERT_TRUE(write_file(path, "old"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path, link);
  auto part = GrowingFile::open(link);
  ASSERT_TRUE(part);
  ASSERT_TRUE(part->begin("new", 3));
  ASSERT_TRUE(part->write("new", 3));
  EXPECT_EQ(*read_file(path), "old");
  ASSERT_TRUE(part->commit());
  EXPECT_EQ(*read_file(path), "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace gimbal
