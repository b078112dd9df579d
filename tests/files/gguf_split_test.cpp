// Models in several files, and the errors when the files do not fit together.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/file.h"
#include "files/gguf.h"
#include "support/gguf_writer.h"
#include "support/golden.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

GgufWriter part(uint16_t number, uint16_t count, int32_t tensors) {
  return GgufWriter()
      .scalar<uint16_t>("split.no", kU16, number)
      .scalar<uint16_t>("split.count", kU16, count)
      .scalar<int32_t>("split.tensors.count", kI32, tensors);
}

void write(const std::string& path, const GgufWriter& writer) {
  const auto done = write_file(path, writer.build());
  ASSERT_TRUE(done) << done.error().message;
}

// Three parts, the first without tensors, as gguf-split can make them. Answers the path without its ending.
std::string three_parts(const std::string& name) {
  const std::string stem = temporary_path(name);
  GgufWriter first = part(0, 3, 3);
  write(stem + "-00001-of-00003.gguf", first.string("general.architecture", "llama"));
  GgufWriter second = part(1, 3, 3);
  write(stem + "-00002-of-00003.gguf", second.floats("a", {2}, {1, 2}).floats("b", {1}, {3}));
  GgufWriter third = part(2, 3, 3);
  write(stem + "-00003-of-00003.gguf", third.floats("c", {3}, {4, 5, 6}));
  return stem;
}

void expect_error(const std::string& path, Code code, const std::vector<std::string>& words) {
  const auto opened = open_gguf(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, code) << opened.error().message;
  const std::string text = opened.error().message + "\n" + opened.error().remedy;
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in:\n" << text;
}

TEST(GgufSplit, AllPartsAreOneModel) {
  const std::string stem = three_parts("whole");
  const auto opened = open_gguf(stem + "-00001-of-00003.gguf");
  ASSERT_TRUE(opened) << opened.error().message;
  const ModelSource& gguf = *opened;
  EXPECT_EQ(gguf.metadata().string("general.architecture"), "llama");
  ASSERT_EQ(gguf.tensors().size(), 3u);
  EXPECT_EQ(gguf.tensors().find("a")->part, 1u);
  EXPECT_EQ(gguf.tensors().find("b")->part, 1u);
  EXPECT_EQ(gguf.tensors().find("c")->part, 2u);
  EXPECT_EQ(read_le<float>(gguf.read(*gguf.tensors().find("b"))->data()), 3.0f);
  EXPECT_EQ(read_le<float>(gguf.read(*gguf.tensors().find("c"))->data() + 8), 6.0f);
  uint64_t sum = 0;
  for (const char* end : {"-00001-of-00003.gguf", "-00002-of-00003.gguf", "-00003-of-00003.gguf"})
    sum += read_file(stem + end)->size();
  EXPECT_EQ(gguf.file_bytes(), sum);
  EXPECT_EQ(read_le<float>(gguf.read(*gguf.tensors().find("c"))->data()), 4.0f);
  EXPECT_TRUE(gguf.is(stem + "-00003-of-00003.gguf")) << "each part is a file of the model";
  EXPECT_FALSE(gguf.is(stem));
}

TEST(GgufSplit, AModelOfOnePartNeedsNoSpecialName) {
  const std::string path = temporary_path("single.gguf");
  GgufWriter writer = part(0, 1, 1);
  write(path, writer.floats("a", {1}, {1}));
  EXPECT_TRUE(open_gguf(path));
}

TEST(GgufSplit, AnotherPartTellsWhichIsTheFirst) {
  const std::string stem = three_parts("second");
  expect_error(stem + "-00002-of-00003.gguf", Code::Usage,
               {"part 2 of 3", "Open the first part: '" + stem + "-00001-of-00003.gguf'"});
}

TEST(GgufSplit, AMissingPartIsNamed) {
  const std::string stem = three_parts("missing");
  std::remove((stem + "-00003-of-00003.gguf").c_str());
  expect_error(stem + "-00001-of-00003.gguf", Code::NotFound,
               {"part 3 of 3", stem + "-00003-of-00003.gguf'", "No such"});
}

TEST(GgufSplit, ABrokenPartIsNamed) {
  const std::string stem = three_parts("broken");
  ASSERT_TRUE(write_file(stem + "-00002-of-00003.gguf", "GGUF"));
  expect_error(stem + "-00001-of-00003.gguf", Code::Malformed, {"-00002-of-00003.gguf' at byte 4: version"});
}

TEST(GgufSplit, ATensorInTwoPartsIsRefused) {
  const std::string stem = three_parts("twice");
  GgufWriter third = part(2, 3, 3);
  write(stem + "-00003-of-00003.gguf", third.floats("a", {3}, {4, 5, 6}));
  expect_error(stem + "-00001-of-00003.gguf", Code::Malformed,
               {"-00003-of-00003.gguf' at byte ", "'a'", "part 2 also has"});
}

TEST(GgufSplit, PartsOfOtherModelsAreRefused) {
  const std::string stem = three_parts("swapped");
  GgufWriter third = part(1, 3, 3);
  write(stem + "-00003-of-00003.gguf", third.floats("c", {1}, {4}));
  expect_error(stem + "-00001-of-00003.gguf", Code::Malformed,
               {"-00003-of-00003.gguf' at byte ", "split.no: expected 2, found 1"});
  third = part(2, 4, 3);
  write(stem + "-00003-of-00003.gguf", third.floats("c", {1}, {4}));
  expect_error(stem + "-00001-of-00003.gguf", Code::Malformed,
               {"-00003-of-00003.gguf' at byte ", "split.count: expected 3, found 4"});
  third = part(2, 3, 3);
  write(stem + "-00003-of-00003.gguf", third.floats("c", {1}, {4}).floats("d", {1}, {5}));
  expect_error(stem + "-00001-of-00003.gguf", Code::Malformed, {"split.tensors.count: expected 4, found 3"});
}

TEST(GgufSplit, ARenamedFileIsTold) {
  const std::string stem = three_parts("renamed");
  for (const char* end : {".gguf", "-00001-of-00004.gguf", "-00002-of-00003.gguf", "-1-of-3.gguf"}) {
    const std::string path = temporary_path("other") + end;
    ASSERT_TRUE(write_file(path, *read_file(stem + "-00001-of-00003.gguf")));
    expect_error(path, Code::Malformed,
                 {"file name of part 1 of 3", "rename the file to NAME-00001-of-00003.gguf"});
  }
}

TEST(GgufSplit, KeysOutOfRange) {
  const std::string path = temporary_path("keys-00001-of-00003.gguf");
  write(path, GgufWriter().u32("split.count", 65536));
  expect_error(path, Code::Malformed,
               {"' at byte 47: split.count: expected an integer from 0 to 65535, found 65536"});
  write(path, GgufWriter().string("split.count", "3"));
  expect_error(path, Code::Malformed, {"split.count: expected an integer", "found a value of type string"});
  write(path, GgufWriter().u32("split.count", 3).scalar<int32_t>("split.no", kI32, -1));
  expect_error(path, Code::Malformed, {"split.no: expected an integer from 0 to 65535, found -1"});
  write(path, GgufWriter().u32("split.count", 3).u32("split.no", 3));
  expect_error(path, Code::Malformed, {"split.no: expected less than 3, the number of parts, found 3"});
}

TEST(GgufSplit, ASplitModelInMemoryIsRefused) {
  const std::string file = part(0, 2, 0).build();
  const auto parsed = parse_gguf({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "m.gguf");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Code::Unsupported);
  EXPECT_NE(parsed.error().message.find("'m.gguf' at byte "), std::string::npos);
  EXPECT_NE(parsed.error().message.find("part 1 of 2"), std::string::npos);
}

TEST(GgufSplit, Names) {
  const auto name = split_name("/a/b-c-00002-of-00012.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "/a/b-c");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 12u);
  EXPECT_EQ(name->path(7), "/a/b-c-00007-of-00012.gguf");
  for (const char* other :
       {"", ".gguf", "a.gguf", "a-1-of-2.gguf", "a-00000-of-00002.gguf", "a-00003-of-00002.gguf",
        "a-00001-of-00002", "a00001-of-00002.gguf", "a-0000x-of-00002.gguf", "-of-00002.gguf"})
    EXPECT_FALSE(split_name(other)) << other;
}

}  // namespace
}  // namespace gimbal
