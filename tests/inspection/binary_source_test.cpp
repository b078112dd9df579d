// Reads of a binary file: what lies outside of it, and what the file has lost meanwhile, is zeros and no
// error of memory.
#include "inspection/binary_source.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/golden.h"

namespace gimbal {
namespace {

constexpr size_t kBytes = 40'000;  // more than two blocks of the cache

std::string contents() {
  std::string all(kBytes, '\0');
  for (size_t i = 0; i < all.size(); i++) all[i] = char('a' + i % 23);
  return all;
}

void expect_reads(BinarySource& source, const std::string& all) {
  EXPECT_EQ(source.size(), all.size());
  const std::pair<uint64_t, size_t> inside[] = {
      {0, 10}, {16'380, 10}, {100, 33'000}, {kBytes - 1, 1}, {kBytes, 0}};
  const std::pair<uint64_t, size_t> outside[] = {{kBytes - 1, 2}, {kBytes, 1},     {kBytes + 1, 0},
                                                 {0, kBytes + 1}, {UINT64_MAX, 2}, {UINT64_MAX - 1, 1}};
  for (const bool cached : {true, false}) {
    const auto read = [&](uint64_t at, std::string& to) {
      return cached ? source.read(at, to.data(), to.size()) : source.read_uncached(at, to.data(), to.size());
    };
    for (const auto& [at, n] : inside) {
      std::string got(n, '?');
      EXPECT_TRUE(read(at, got)) << at;
      EXPECT_EQ(got, all.substr(at, n)) << at;
    }
    for (const auto& [at, n] : outside) {
      std::string got(n, '?');
      EXPECT_FALSE(read(at, got)) << at;
      EXPECT_EQ(got, std::string(n, '\0')) << at;
    }
  }
  EXPECT_FALSE(source.failure()) << "the end of a file is no failure";
}

TEST(BinarySources, OfMemoryEndWhereItEnds) {
  const std::string all = contents();
  BinarySource source(std::as_bytes(std::span(all)));
  expect_reads(source, all);
}

TEST(BinarySources, OfAFileEndWhereItEnds) {
  const std::string path = test::temporary_path("source"), all = contents();
  ASSERT_TRUE(write_file(path, all));
  auto source = BinarySource::open(path);
  ASSERT_TRUE(source) << source.error().message;
  expect_reads(*source, all);
}

// What was read before the file shrank is there; the rest is zeros, and the failure is kept.
TEST(BinarySources, AFileThatShrinksIsAFailure) {
  const std::string path = test::temporary_path("shrinks"), all = contents();
  ASSERT_TRUE(write_file(path, all));
  auto source = BinarySource::open(path);
  ASSERT_TRUE(source) << source.error().message;
  std::string got(10, '?');
  ASSERT_TRUE(source->read(0, got.data(), got.size()));
  std::filesystem::resize_file(path, 20'000);
  got.assign(30'000, '?');
  EXPECT_FALSE(source->read(0, got.data(), got.size()));
  EXPECT_EQ(got, all.substr(0, 16'384) + std::string(30'000 - 16'384, '\0'));
  ASSERT_TRUE(source->failure());
  got.assign(10, '?');
  EXPECT_FALSE(source->read_uncached(0, got.data(), got.size())) << "after a failure nothing more is read";
  EXPECT_EQ(got, std::string(10, '\0'));
}

TEST(BinarySources, PartsReadZerosBehindTheirEnd) {
  const std::string all = contents();
  BinarySource source(std::as_bytes(std::span(all)));
  const ByteView part = ByteView(source).part(23, 3);
  EXPECT_EQ(part.size(), 3u);
  EXPECT_EQ(part.field(0, 3), "abc");
  EXPECT_EQ(part.text(1), "bc");
  EXPECT_EQ(part.u8(2), 'c');
  EXPECT_EQ(part.u16(2), 0) << "its second byte is outside";
  EXPECT_EQ(part.u8(3), 0);
  EXPECT_FALSE(part.starts_with(0, "abcd"));
  EXPECT_EQ(ByteView(source).part(kBytes - 2, 100).size(), 2u);
  EXPECT_EQ(ByteView(source).part(kBytes + 9, 100).size(), 0u);
}

}  // namespace
}  // namespace gimbal
