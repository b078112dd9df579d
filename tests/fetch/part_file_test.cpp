// A part of a file outlives its writer, and is trusted as far as its note and its bytes agree.
#include "fetch/part_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

constexpr uint64_t kBytes = 10 << 20;

std::string target(const char* name) {
  const std::string path = temporary_path(name);
  std::filesystem::remove(PartFile::path_of(path));
  std::filesystem::remove(PartFile::path_of(path) + ".json");
  return path;
}

// As a transfer leaves it that is lost after so many bytes of each piece.
void leave(const std::string& path, const char* version, size_t pieces, uint64_t of_each) {
  auto part = PartFile::open(path, kBytes, version);
  ASSERT_TRUE(part);
  part->cut(pieces);
  for (Gap& g : part->gaps) {
    const std::string bytes(of_each, 'x');
    ASSERT_EQ(pwrite(part->descriptor(), bytes.data(), bytes.size(), off_t(g.at)), ssize_t(bytes.size()));
    g.at += of_each;
  }
  ASSERT_TRUE(part->note());
}

uint64_t missing(const std::string& path, const char* version, uint64_t bytes = kBytes) {
  auto part = PartFile::open(path, bytes, version);
  return part ? part->missing() : ~uint64_t(0);
}

TEST(PartFile, GoesOnWhereItEnded) {
  const std::string path = target("part-resumed");
  leave(path, "v1", 4, 1000);
  EXPECT_EQ(missing(path, "v1"), kBytes - 4000);
  EXPECT_EQ(missing(path, "v2"), kBytes) << "another content";
  EXPECT_EQ(missing(path, "v1"), kBytes) << "whose bytes are gone by now";
}

TEST(PartFile, IsNotTrustedWithoutAVersionOrWithAnotherSize) {
  const std::string path = target("part-other");
  leave(path, "v1", 2, 1000);
  EXPECT_EQ(missing(path, "v1", kBytes + 1), kBytes + 1);
  leave(path, "", 2, 1000);
  EXPECT_EQ(missing(path, ""), kBytes);
}

TEST(PartFile, NoteOfAFileThatWasCutIsNotBelieved) {
  const std::string path = target("part-cut");
  leave(path, "v1", 4, 1000);
  std::filesystem::resize_file(PartFile::path_of(path), kBytes / 2);
  EXPECT_EQ(missing(path, "v1"), kBytes);
}

TEST(PartFile, NotesThatMakeNoSenseAreNone) {
  const std::string path = target("part-hostile"), note = PartFile::path_of(path) + ".json";
  for (const char* text : {"", "[]", R"({"version":"v1","bytes":10485760})",
                           R"({"version":"v1","bytes":10485760,"missing":[[5,3]]})",
                           R"({"version":"v1","bytes":10485760,"missing":[[0,10485761]]})",
                           R"({"version":"v1","bytes":10485760,"missing":[[0]]})",
                           R"({"version":"v1","bytes":10485760,"missing":[7]})",
                           R"({"version":"v1","bytes":10485760,"missing":[[-1,3]]})",
                           R"({"version":"v1","bytes":10485760,"missing":[]})"}) {
    ASSERT_TRUE(write_file(note, text));
    EXPECT_EQ(missing(path, "v1"), kBytes) << text;
  }
}

// The bytes behind the last piece that arrived are not in the file yet.
TEST(PartFile, HasTheLastByteThatItsNoteClaims) {
  for (const uint64_t lost : {0, 1}) {
    const std::string path = target("part-last-byte");
    leave(path, "v1", 1, 1000);
    ASSERT_EQ(std::filesystem::file_size(PartFile::path_of(path)), 1000u);
    std::filesystem::resize_file(PartFile::path_of(path), 1000 - lost);
    EXPECT_EQ(missing(path, "v1"), lost ? kBytes : kBytes - 1000) << lost;
  }
}

TEST(PartFile, SaysThatItDiscardsOtherContent) {
  const std::string path = target("part-discarded");
  EXPECT_FALSE(PartFile::open(path, kBytes, "v1")->discarded()) << "nothing was there";
  leave(path, "v1", 1, 1000);
  EXPECT_FALSE(PartFile::open(path, kBytes, "v1")->discarded());
  EXPECT_TRUE(PartFile::open(path, kBytes, "v2")->discarded());
}

using Ends = std::vector<std::pair<uint64_t, uint64_t>>;
Ends pieces_of(PartFile& part, size_t pieces) {
  part.cut(pieces);
  Ends out;
  for (const Gap& g : part.gaps) out.emplace_back(g.at, g.end);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(PartFile, IsCutIntoPiecesOfAMegabyteOrMore) {
  const std::string path = target("part-pieces");
  constexpr uint64_t mb = 1 << 20;
  auto part = PartFile::open(path, 8 * mb, "v1");
  ASSERT_TRUE(part);
  EXPECT_EQ(pieces_of(*part, 1), (Ends{{0, 8 * mb}}));
  EXPECT_EQ(pieces_of(*part, 3), (Ends{{0, 2 * mb}, {2 * mb, 4 * mb}, {4 * mb, 8 * mb}}));
  EXPECT_EQ(pieces_of(*part, 4), (Ends{{0, 2 * mb}, {2 * mb, 4 * mb}, {4 * mb, 6 * mb}, {6 * mb, 8 * mb}}));
  part->gaps[0].at = part->gaps[0].end;  // complete: others take its place
  EXPECT_EQ(pieces_of(*part, 4).size(), 4u);
  EXPECT_EQ(part->missing(), 6 * mb);
  part->gaps = {{0, 2 * mb - 1}};
  EXPECT_EQ(pieces_of(*part, 2).size(), 1u) << "halves would be too small";
  part->gaps = {{0, 2 * mb}};
  EXPECT_EQ(pieces_of(*part, 2), (Ends{{0, mb}, {mb, 2 * mb}}));
  part->gaps = {{0, 2 * mb + 1}};
  EXPECT_EQ(pieces_of(*part, 2), (Ends{{0, mb}, {mb, 2 * mb + 1}})) << "no byte is left out";
}

TEST(PartFile, ANoteHasAtMost64Gaps) {
  const std::string path = target("part-gaps");
  for (const size_t gaps : {64, 65}) {
    auto part = PartFile::open(path, kBytes, "v1");
    ASSERT_TRUE(part);
    part->gaps.clear();
    for (size_t i = 0; i < gaps; i++) part->gaps.push_back({kBytes - 2 * i - 1, kBytes - 2 * i});
    ASSERT_TRUE(part->note());
    ASSERT_EQ(ftruncate(part->descriptor(), kBytes), 0);
    EXPECT_EQ(missing(path, "v1"), gaps == 64 ? 64 : kBytes);
  }
}

TEST(PartFile, BecomesTheFile) {
  const std::string path = target("part-whole");
  auto part = PartFile::open(path, 5, "v1");
  ASSERT_TRUE(part);
  part->cut(4);
  EXPECT_EQ(part->gaps.size(), 1u) << "a piece of a useful size";
  ASSERT_EQ(pwrite(part->descriptor(), "hello", 5, 0), 5);
  part->gaps[0].at = 5;
  ASSERT_TRUE(part->note());
  ASSERT_TRUE(part->finish());
  EXPECT_EQ(*read_file(path), "hello");
  EXPECT_FALSE(std::filesystem::exists(part->path()));
  EXPECT_FALSE(std::filesystem::exists(part->path() + ".json"));
}

}  // namespace
}  // namespace gimbal::test
