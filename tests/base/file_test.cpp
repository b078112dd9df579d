// Files that are there, and everything that a path can name instead.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/golden.h"

namespace gimbal {
namespace {

using test::temporary_path;

std::string refusal(const std::string& path, Code code) {
  auto mapped = MappedFile::open(path);
  auto whole = read_file(path);
  EXPECT_FALSE(mapped) << path;
  EXPECT_FALSE(whole) << path;
  if (mapped || whole) return "";
  EXPECT_EQ(mapped.error().code, code);
  EXPECT_EQ(mapped.error().message, whole.error().message);
  EXPECT_NE(mapped.error().message.find(path), std::string::npos) << "the message must name the file";
  return mapped.error().message;
}

TEST(File, WhatIsWrittenIsRead) {
  const std::string path = temporary_path("bytes");
  std::string text("a\0b\nc\xff", 6);
  ASSERT_TRUE(write_file(path, text));
  EXPECT_EQ(*read_file(path), text);
  ASSERT_TRUE(write_file(path, "z")) << "shorter contents replace longer ones";
  EXPECT_EQ(*read_file(path), "z");
  ASSERT_TRUE(write_file(path, ""));
  auto empty = MappedFile::open(path);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  empty->fetch(empty->bytes());
  empty->release(empty->bytes());
}

TEST(File, WhatIsNoFileIsSaid) {
  EXPECT_NE(refusal(temporary_path("missing"), Code::NotFound).find("No such file"), std::string::npos);
  const std::string folder = temporary_path("folder");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  EXPECT_NE(refusal(folder, Code::Failed).find("folder"), std::string::npos);
  EXPECT_NE(refusal("/dev/null", Code::Failed).find("special"), std::string::npos);
  EXPECT_NE(refusal(folder + "/no/such/path", Code::NotFound), "");
  EXPECT_FALSE(write_file(folder, "x"));
  EXPECT_FALSE(write_file(folder + "/no/such/path", "x"));
}

TEST(File, AFifoNobodyWritesToIsNotWaitedFor) {
  const std::string fifo = temporary_path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(refusal(fifo, Code::Failed).find("special"), std::string::npos);
}

TEST(File, AFullDiskIsAnError) {
  auto full = write_file("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("/dev/full"), std::string::npos);
}

TEST(File, ReplacingIsWholeOrNotAtAll) {
  const std::string folder = temporary_path("replaced"), path = folder + "/made/on/demand";
  ASSERT_TRUE(replace_file(path, "one"));
  auto old = MappedFile::open(path);
  ASSERT_TRUE(old);
  ASSERT_TRUE(replace_file(path, "three"));
  EXPECT_EQ(*read_file(path), "three");
  EXPECT_EQ(old->bytes().size(), 3u) << "another file: who reads the old one goes on";
  EXPECT_FALSE(replace_file("/proc/nothing/here", "x"));
  EXPECT_FALSE(replace_file(folder, "x")) << "a folder is in its place";
  int files = 0;
  for (auto& f : std::filesystem::recursive_directory_iterator(folder)) files += f.is_regular_file();
  EXPECT_EQ(files, 1) << "and no draft is left";
  EXPECT_FALSE(std::filesystem::exists(folder + "." + std::to_string(getpid())));
}

TEST(File, MappingsMoveAndAnyRangeCanBeFetchedAndReleased) {
  const std::string path = temporary_path("large");
  std::string text;
  for (int i = 0; i < 40000; i++) text += char('a' + i % 26);
  ASSERT_TRUE(write_file(path, text));
  auto opened = MappedFile::open(path);
  ASSERT_TRUE(opened);
  MappedFile a = std::move(*opened), b;
  b = std::move(a);
  EXPECT_TRUE(a.bytes().empty());  // NOLINT: moved from on purpose
  ASSERT_EQ(b.bytes().size(), text.size());
  unlink(path.c_str());  // the mapping holds the contents
  for (auto [from, n] : {std::pair<size_t, size_t>{0, 0}, {1, 5}, {100, 39000}, {39999, 1}, {0, 40000}})
    b.fetch(b.bytes().subspan(from, n)), b.release(b.bytes().subspan(from, n));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(b.bytes().data()), b.bytes().size()), text);
}

}  // namespace
}  // namespace gimbal
