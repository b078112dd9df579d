// The writer of GGUF files, judged by files that other programs wrote: read and written again, they are the
// same, byte for byte.
#include "files/gguf_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "files/gguf.h"
#include "support/golden.h"

namespace gimbal {
namespace {

GgufWriter::Sink into(std::string& to) {
  return [&to](const void* data, size_t n) -> Status {
    to.append(static_cast<const char*>(data), n);
    return Done{};
  };
}

std::string rewritten(const ModelSource& from) {
  GgufWriter w;
  w.add(from.metadata());
  for (const StoredTensor& t : from.tensors()) w.tensor(t);
  std::string bytes;
  const auto ok = w.write(
      [&](size_t i, uint64_t offset, void* to, size_t n) { return from.reader().read(i, offset, to, n); },
      into(bytes));
  EXPECT_TRUE(ok) << ok.error().message;
  return bytes;
}

// Files of gguf-py and llama.cpp, in version 3 and with all tensors as they lie in GGUF.
TEST(GgufWriter, ForeignFilesAreWrittenAgainByteForByte) {
  size_t files = 0, formats = 0;
  DTypeSet seen = 0;
  for (const char* folder : {"/stories", "/quant", "/arch"})
    for (const auto& at : std::filesystem::directory_iterator(test::golden_dir() + folder)) {
      if (at.path().extension() != ".gguf") continue;
      SCOPED_TRACE(at.path());
      const auto from = open_gguf(at.path());
      ASSERT_TRUE(from) << from.error().message;
      const std::string whole = *read_file(at.path());
      const std::string again = rewritten(*from);
      ASSERT_EQ(again.size(), whole.size());
      EXPECT_TRUE(again == whole);
      files++;
      for (const StoredTensor& t : from->tensors()) formats += !has(seen, t.type), seen |= set_of(t.type);
    }
  EXPECT_GE(files, 20u);
  EXPECT_GE(formats, test::whole_collection() ? 10u : 9u);
}

TEST(GgufWriter, EveryTypeComesBack) {
  const int32_t numbers[] = {-1, 2, 3};
  const std::string words[] = {"a", "", "c\n"};
  GgufWriter w;
  w.u32("u32", 7).i32("i32", -7).u64("u64", UINT64_MAX).f32("f32", 0.5f).boolean("yes", true);
  w.string("text", "x\xff").strings("words", words).array<int32_t>("numbers", MetadataType::I32, numbers);
  w.add("u8", {MetadataType::U8, uint64_t(255)}).add("i16", {MetadataType::I16, int64_t(-300)});
  w.add("f64", {MetadataType::F64, 0.1}).u32("general.alignment", 64);
  const int64_t dims[] = {3, 2};
  EXPECT_EQ(w.tensor("a", DType::F32, dims), 0u);
  EXPECT_EQ(w.tensor("b", DType::F32, std::span(dims).first(1)), 1u);
  std::string bytes;
  ASSERT_TRUE(w.write(
      [](size_t i, uint64_t, void* to, size_t n) -> Status {
        memset(to, i ? 'b' : 'a', n);
        return Done{};
      },
      into(bytes)));
  const auto read = parse_gguf(std::as_bytes(std::span(bytes)), "made");
  ASSERT_TRUE(read) << read.error().message;
  const Metadata& m = read->metadata();
  EXPECT_EQ(read->file_format().version, 3u);
  EXPECT_EQ(m.unsigned_integer("u32"), 7u);
  EXPECT_EQ(m.number("i32"), -7);
  EXPECT_EQ(m.unsigned_integer("u64"), UINT64_MAX);
  EXPECT_EQ(m.number("f32"), 0.5);
  EXPECT_EQ(m.boolean("yes"), true);
  EXPECT_EQ(m.string("text"), "x\xff");
  EXPECT_EQ(m.array("words")->strings(), (std::vector<std::string_view>{"a", "", "c\n"}));
  EXPECT_EQ(m.array("numbers")->integers(), (std::vector<int64_t>{-1, 2, 3}));
  EXPECT_EQ(m.find("u8")->type, MetadataType::U8);
  EXPECT_EQ(m.number("u8"), 255);
  EXPECT_EQ(m.number("i16"), -300);
  EXPECT_EQ(m.number("f64"), 0.1);
  EXPECT_EQ(m.keys().front(), "u32");
  ASSERT_EQ(read->tensors().size(), 2u);
  const StoredTensor* b = read->tensors().find("b");
  EXPECT_EQ(b->index, 1u);
  EXPECT_EQ(b->offset % 64, 0u);
  EXPECT_EQ(char(read->read(*b)->back()), 'b');
  EXPECT_EQ(char(read->read(read->tensors()[0])->back()), 'a');
  EXPECT_EQ(bytes.size() % 64, 0u);
}

TEST(GgufWriter, RefusesWhatNoReaderWouldTake) {
  const int64_t row[] = {32}, odd[] = {33};
  auto refused = [](const GgufWriter& w, const char* word) {
    std::string bytes;
    const auto ok = w.write([](size_t, uint64_t, void*, size_t) -> Status { return Done{}; }, into(bytes));
    ASSERT_FALSE(ok) << word;
    EXPECT_EQ(ok.error().code, Code::Unsupported);
    EXPECT_NE(ok.error().message.find(word), std::string::npos) << ok.error().message;
    EXPECT_TRUE(bytes.empty()) << "nothing is passed to the sink";
  };
  refused(GgufWriter().u32("", 1), "key");
  refused(GgufWriter().u32("k", 1).u32("k", 2), "duplicate key 'k'");
  refused(GgufWriter().u32("general.alignment", 24), "power of two");
  GgufWriter w;
  w.tensor("t", DType::Q8_0, odd);
  refused(w, "multiple of 32");
  w = {};
  w.tensor("t", DType::F32, {});
  refused(w, "dimensions");
  w = {};
  w.tensor("t", DType::F32, row), w.tensor("t", DType::F32, row);
  refused(w, "duplicate tensor 't'");
  w = {};
  w.tensor("t\xff", DType::F32, row);
  refused(w, "UTF-8");
}

TEST(GgufWriter, AnErrorOfTheReaderEndsTheFile) {
  const int64_t row[] = {8};
  GgufWriter w;
  w.tensor("t", DType::F32, row);
  const std::string path = test::temporary_path("unfinished.gguf");
  const auto ok = w.write_file(path, [](size_t, uint64_t, void*, size_t) -> Status {
    return Error{Code::Failed, "the source is gone", ""};
  });
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().message, "the source is gone");
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace gimbal
