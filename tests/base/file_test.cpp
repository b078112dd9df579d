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
}

TEST(File, WhatIsNoFileIsSaid) {
  EXPECT_NE(refusal(temporary_path("missing"), Code::NotFound).find("No such file"), std::string::npos);
  const std::string folder = temporary_path("folder");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  EXPECT_NE(refusal(folder, Code::Failed).find("folder"), std::string::npos);
  EXPECT_NE(refusal("/dev/null", Code::Failed).find("pipe or device"), std::string::npos);
  EXPECT_NE(refusal(folder + "/no/such/path", Code::NotFound), "");
  EXPECT_FALSE(write_file(folder, "x"));
  EXPECT_FALSE(write_file(folder + "/no/such/path", "x"));
}

TEST(File, AFifoNobodyWritesToIsNotWaitedFor) {
  const std::string fifo = temporary_path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(refusal(fifo, Code::Failed).find("pipe or device"), std::string::npos);
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
  EXPECT_EQ(old->bytes().size(), 3u) << "another file: readers of the old one continue";
  EXPECT_FALSE(replace_file("/proc/nothing/here", "x"));
  EXPECT_FALSE(replace_file(folder, "x")) << "a folder is in its place";
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  EXPECT_TRUE(replace_file("bare", "a name without a folder"));
  std::filesystem::current_path(here);
  EXPECT_EQ(*read_file(folder + "/bare"), "a name without a folder");
  int files = 0;
  for (auto& f : std::filesystem::recursive_directory_iterator(folder)) files += f.is_regular_file();
  EXPECT_EQ(files, 2) << "and no draft is left";
  for (auto& f : std::filesystem::directory_iterator(std::filesystem::path(folder).parent_path()))
    EXPECT_FALSE(f.path().string().starts_with(folder + ".")) << f.path();
}

TEST(File, MappingsMove) {
  const std::string path = temporary_path("large");
  const std::string text(40000, 'm');
  ASSERT_TRUE(write_file(path, text));
  auto opened = MappedFile::open(path);
  ASSERT_TRUE(opened);
  MappedFile a = std::move(*opened), b;
  b = std::move(a);
  EXPECT_TRUE(a.bytes().empty());  // NOLINT: moved from on purpose
  unlink(path.c_str());            // the mapping holds the contents
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(b.bytes().data()), b.bytes().size()), text);
}

TEST(File, PiecesAreReadAndALostEndIsAnError) {
  const std::string path = temporary_path("pieces"), link = temporary_path("link-to-pieces");
  ASSERT_TRUE(write_file(path, "0123456789"));
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  auto opened = InputFile::open(path);
  ASSERT_TRUE(opened);
  InputFile file;
  file = std::move(*opened);
  EXPECT_EQ(file.size(), 10u);
  EXPECT_TRUE(file.is(path) && file.is(link));
  EXPECT_FALSE(file.is("/dev/null"));
  char some[4] = "";
  ASSERT_TRUE(file.read(7, some, 3));
  EXPECT_STREQ(some, "789");
  ASSERT_EQ(truncate(path.c_str(), 8), 0);
  const auto lost = file.read(7, some, 3);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::Malformed);
  EXPECT_NE(lost.error().message.find("expected 10 bytes, found 8"), std::string::npos)
      << lost.error().message;
}

TEST(File, IsReadToItsEndWhateverItsSizeIsSaidToBe) {
  auto version = read_file("/proc/version");  // the system reports its size as 0
  ASSERT_TRUE(version);
  EXPECT_NE(version->find("version"), std::string::npos);
  const std::string path = temporary_path("bounded");
  ASSERT_TRUE(write_file(path, std::string(5000, 'x')));
  EXPECT_EQ(read_file(path, 5000)->size(), 5000u);
  const auto longer = read_file(path, 4999);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::Usage);
}

// In pieces of any size, around and over those of 8 MB that the system is given.
TEST(File, ADraftHoldsAllThatWasWritten) {
  const std::string path = temporary_path("draft");
  auto draft = DraftFile::create(path);
  ASSERT_TRUE(draft) << draft.error().message;
  constexpr size_t kPiece = size_t(8) << 20;
  std::string all;
  for (size_t size :
       {size_t(1), kPiece - 2, size_t(1), size_t(1), size_t(0), 2 * kPiece + 5, kPiece - 6, size_t(77)}) {
    std::string part(size, ' ');
    for (size_t i = 0; i < size; i++) part[i] = char((all.size() + i) * 2654435761u >> 13);
    ASSERT_TRUE(draft->write(part.data(), part.size()));
    all += part;
  }
  DraftFile moved = std::move(*draft);
  ASSERT_TRUE(moved.sync());
  ASSERT_TRUE(moved.write("end", 3));
  EXPECT_FALSE(read_file(path)) << "nothing is there before it is whole";
  ASSERT_TRUE(moved.commit());
  EXPECT_TRUE(*read_file(path) == all + "end");
}

}  // namespace
}  // namespace gimbal
