// Reading right GGUF files: the reference models and files from our own writer. What is refused, and how, is
// in gguf_errors_test.cpp; mutated files are in gguf_hostile_test.cpp.
#include "files/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/format.h"
#include "support/gguf_writer.h"
#include "support/golden.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

Bytes bytes_of(const std::string& s) { return {reinterpret_cast<const std::byte*>(s.data()), s.size()}; }

Result<ModelSource> parse(const std::string& file) { return parse_gguf(bytes_of(file), "m.gguf"); }

// The opened file; on failure the test fails with the message and continues with an empty one.
template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  ADD_FAILURE() << result.error().message;
  if constexpr (std::is_same_v<T, ModelSource>) return {{"none", 0}, Metadata(), TensorTable(), nullptr};
  else return {};
}

MetadataArray array(const ModelSource& gguf, std::string_view key) {
  if (const MetadataArray* found = gguf.metadata().array(key)) return *found;
  ADD_FAILURE() << "no array " << key;
  return {};
}

std::vector<std::string> golden_models() {
  std::vector<std::string> all;
  for (const char* folder : {"stories", "arch", "quant"})
    for (const std::string& path : golden_files(folder, ".gguf")) all.push_back(path);
  return all;
}

TEST(GgufGolden, TypesAndVocabularySizeAreThoseOfTheReference) {
  int with_types = 0;
  for (const std::string& path : golden_models()) {
    SCOPED_TRACE(path);
    const auto golden = read_json(std::filesystem::path(path).replace_extension(".json").string());
    const ModelSource gguf = must(open_gguf(path));
    EXPECT_EQ(gguf.file_format().version, 3u);
    EXPECT_EQ(gguf.path(), path);
    EXPECT_EQ(gguf.file_bytes(), std::filesystem::file_size(path));
    EXPECT_EQ(gguf.metadata().string("general.architecture"), golden.at("arch").get<std::string>());
    const auto n_vocab = golden.at("n_vocab").get<uint64_t>();
    const MetadataArray* tokens = gguf.metadata().array("tokenizer.ggml.tokens");
    ASSERT_TRUE(tokens);
    EXPECT_EQ(tokens->count, n_vocab);
    EXPECT_EQ(tokens->strings().size(), n_vocab);
    EXPECT_EQ(tokens->strings()[0], "<unk>");
    EXPECT_EQ(tokens->strings()[1], "<s>");
    EXPECT_EQ(array(gguf, "tokenizer.ggml.scores").floats().size(), n_vocab);
    EXPECT_EQ(array(gguf, "tokenizer.ggml.token_type").integers().size(), n_vocab);
    const StoredTensor* embedding = gguf.tensors().find("token_embd.weight");
    ASSERT_TRUE(embedding);
    EXPECT_EQ(embedding->rank, 2u);
    EXPECT_EQ(embedding->dim[1], int64_t(n_vocab));
    if (!golden.contains("tensor_types")) continue;
    with_types++;
    std::map<DType, int> expected, found;
    for (const auto& [name, count] : golden.at("tensor_types").items()) {
      ASSERT_TRUE(dtype_named(name)) << name;
      expected[*dtype_named(name)] = count;
    }
    for (const StoredTensor& t : gguf.tensors()) found[t.type]++;
    EXPECT_EQ(found, expected);
  }
  EXPECT_GE(with_types, 2);
}

// These files were written without a gap, so the last tensor, padded, must end exactly where the file does,
// and each tensor must begin where the one before it ended: wrong sizes for any type would show.
TEST(GgufGolden, TensorsFillTheFile) {
  for (const std::string& path : golden_models()) {
    SCOPED_TRACE(path);
    const ModelSource gguf = must(open_gguf(path));
    ASSERT_FALSE(gguf.tensors().empty());
    uint64_t next = gguf.tensors()[0].offset;
    for (const StoredTensor& t : gguf.tensors()) {
      EXPECT_EQ(t.offset, next) << t.name;
      next = (t.offset + t.bytes + 31) / 32 * 32;
      EXPECT_EQ(gguf.tensors().find(t.name), &t);
      EXPECT_EQ(t.part, 0u);
    }
    EXPECT_EQ(next, gguf.file_bytes());
  }
}

TEST(GgufGolden, StoriesTensors) {
  for (const std::string& path : golden_files("stories", ".gguf")) {
    SCOPED_TRACE(path);
    const ModelSource gguf = must(open_gguf(path));
    const bool quantized = path.find("q4_0") != std::string::npos || path.find("q8_0") != std::string::npos;
    EXPECT_EQ(gguf.tensors().size(), 47u);  // 5 layers of 9, the embedding, the last norm
    EXPECT_EQ(gguf.metadata().unsigned_integer("llama.block_count"), 5u);
    EXPECT_EQ(gguf.metadata().unsigned_integer("llama.embedding_length"), 64u);
    EXPECT_EQ(gguf.metadata().unsigned_integer("llama.attention.head_count_kv"), 4u);
    struct {
      const char* name;
      int64_t in, out;
    } const matrices[] = {{"token_embd.weight", 64, 512},      {"blk.0.attn_q.weight", 64, 64},
                          {"blk.1.attn_k.weight", 64, 32},     {"blk.2.attn_v.weight", 64, 32},
                          {"blk.3.ffn_gate.weight", 64, 172},  {"blk.4.ffn_down.weight", 172, 64},
                          {"blk.4.attn_output.weight", 64, 64}};
    for (const auto& m : matrices) {
      const StoredTensor* t = gguf.tensors().find(m.name);
      ASSERT_TRUE(t) << m.name;
      EXPECT_EQ(t->rank, 2u);
      EXPECT_EQ(t->dim[0], m.in) << m.name;
      EXPECT_EQ(t->dim[1], m.out) << m.name;
      EXPECT_EQ(t->dim[2] * t->dim[3], 1);
    }
    if (quantized) { EXPECT_EQ(gguf.tensors().find("blk.4.ffn_down.weight")->type, DType::F16); }
    const StoredTensor* norm = gguf.tensors().find("output_norm.weight");
    ASSERT_TRUE(norm);
    EXPECT_EQ(norm->rank, 1u);
    EXPECT_EQ(norm->type, DType::F32);
    EXPECT_EQ(norm->bytes, 64u * 4);
  }
}

// The f32 and the q8_0 file hold the same trained weights, so the bytes found for a tensor in one must be
// close to those found in the other. Wrong offsets could not pass.
TEST(GgufGolden, DataIsAtTheRightPlace) {
  const ModelSource exact = must(open_gguf(golden_dir() + "/stories/stories260K-f32.gguf"));
  const ModelSource coded = must(open_gguf(golden_dir() + "/stories/stories260K-q8_0.gguf"));
  int compared = 0;
  for (const StoredTensor& t : coded.tensors()) {
    const StoredTensor* same = exact.tensors().find(t.name);
    ASSERT_TRUE(same) << t.name;
    if (t.type == DType::F32) {
      EXPECT_EQ(must(coded.read(t)), must(exact.read(*same))) << t.name;
      compared++;
    }
    if (t.type != DType::Q8_0) continue;
    const auto codes = must(coded.read(t)), values = must(exact.read(*same));
    for (size_t block = 0; block < t.bytes / 34; block++) {
      // The largest value of a block is coded as +-127, so the f16 scale times 127 is its magnitude.
      const auto half = read_le<uint16_t>(codes.data() + block * 34);
      const double scale = std::ldexp(1 + (half & 1023) / 1024.0, (half >> 10 & 31) - 15);
      for (size_t i = 0; i < 32; i++) {
        const auto code = read_le<int8_t>(codes.data() + block * 34 + 2 + i);
        const auto value = read_le<float>(values.data() + (block * 32 + i) * 4);
        ASSERT_NEAR(scale * code, value, scale * 0.6) << t.name << " block " << block;
      }
    }
    compared++;
  }
  EXPECT_GT(compared, 30);
}

TEST(GgufGolden, Vocabularies) {
  // Sizes of the published vocabularies.
  const std::map<std::string, uint64_t> sizes = {
      {"llama-spm", 32000}, {"gpt-2", 50257}, {"llama-bpe", 128256}, {"phi-3", 32064}, {"tok512", 512}};
  int checked = 0;
  for (const std::string& path : golden_files("vocab", ".gguf.gz")) {
    SCOPED_TRACE(path);
    const std::string file = gunzip_file(path);
    const ModelSource gguf = must(parse(file));
    EXPECT_TRUE(gguf.tensors().empty());
    ASSERT_TRUE(gguf.metadata().array("tokenizer.ggml.tokens"));
    const auto name = std::filesystem::path(path).stem().stem().string();
    if (!sizes.count(name)) continue;
    EXPECT_EQ(array(gguf, "tokenizer.ggml.tokens").strings().size(), sizes.at(name));
    checked++;
  }
  EXPECT_GE(checked, 1);
}

TEST(Gguf, EveryMetadataType) {
  const std::string file = GgufWriter()
                               .scalar<uint8_t>("u8", kU8, 200)
                               .scalar<int8_t>("i8", kI8, -100)
                               .scalar<uint16_t>("u16", kU16, 60000)
                               .scalar<int16_t>("i16", kI16, -30000)
                               .scalar<uint32_t>("u32", kU32, 4000000000u)
                               .scalar<int32_t>("i32", kI32, -2000000000)
                               .scalar<uint64_t>("u64", kU64, UINT64_MAX)
                               .scalar<int64_t>("i64", kI64, INT64_MIN)
                               .scalar<float>("f32", kF32, 1.5f)
                               .scalar<double>("f64", kF64, 1e300)
                               .boolean("yes", true)
                               .boolean("no", false)
                               .string("text", "caf\xc3\xa9")
                               .string("not.utf8", "\xff\xfe")
                               .string("empty", "")
                               .scalar<int32_t>("small", kI32, 7)
                               .build();
  const ModelSource gguf = must(parse(file));
  EXPECT_EQ(gguf.metadata().size(), 16u);
  EXPECT_EQ(gguf.metadata().unsigned_integer("u8"), 200u);
  EXPECT_EQ(gguf.metadata().unsigned_integer("u16"), 60000u);
  EXPECT_EQ(gguf.metadata().unsigned_integer("u32"), 4000000000u);
  EXPECT_EQ(gguf.metadata().unsigned_integer("u64"), UINT64_MAX);
  EXPECT_EQ(gguf.metadata().unsigned_integer("small"), 7u);
  EXPECT_EQ(gguf.metadata().number("i8"), -100.0);
  EXPECT_EQ(gguf.metadata().number("i16"), -30000.0);
  EXPECT_EQ(gguf.metadata().number("i32"), -2e9);
  EXPECT_EQ(gguf.metadata().number("u8"), 200.0);
  EXPECT_EQ(gguf.metadata().number("f32"), 1.5);
  EXPECT_EQ(gguf.metadata().number("f64"), 1e300);
  EXPECT_EQ(std::get<int64_t>(gguf.metadata().find("i64")->value), INT64_MIN);
  EXPECT_EQ(gguf.metadata().find("i64")->type, MetadataType::I64);
  EXPECT_EQ(gguf.metadata().boolean("yes"), true);
  EXPECT_EQ(gguf.metadata().boolean("no"), false);
  EXPECT_EQ(gguf.metadata().string("text"), "caf\xc3\xa9");
  EXPECT_EQ(gguf.metadata().string("not.utf8"), "\xff\xfe");
  EXPECT_EQ(gguf.metadata().string("empty"), "");
  // Absent, of another kind, or not fitting.
  EXPECT_EQ(gguf.metadata().find("other"), nullptr);
  EXPECT_EQ(gguf.metadata().unsigned_integer("other"), std::nullopt);
  EXPECT_EQ(gguf.metadata().unsigned_integer("i8"), std::nullopt);
  EXPECT_EQ(gguf.metadata().unsigned_integer("f32"), std::nullopt);
  EXPECT_EQ(gguf.metadata().unsigned_integer("yes"), std::nullopt);
  EXPECT_EQ(gguf.metadata().number("yes"), std::nullopt);
  EXPECT_EQ(gguf.metadata().number("text"), std::nullopt);
  EXPECT_EQ(gguf.metadata().boolean("u8"), std::nullopt);
  EXPECT_EQ(gguf.metadata().string("u8"), std::nullopt);
  EXPECT_EQ(gguf.metadata().array("u8"), nullptr);
  EXPECT_EQ(gguf.tensors().find("u8"), nullptr);
}

TEST(Gguf, EveryArrayType) {
  const std::string file = GgufWriter()
                               .array<uint8_t>("u8", kU8, {1, 255})
                               .array<int8_t>("i8", kI8, {-1, 127})
                               .array<uint16_t>("u16", kU16, {65535})
                               .array<int16_t>("i16", kI16, {-32768})
                               .array<uint32_t>("u32", kU32, {4294967295u, 1})
                               .array<int32_t>("i32", kI32, {-5, 5})
                               .array<uint64_t>("u64", kU64, {uint64_t(1) << 62})
                               .array<int64_t>("i64", kI64, {INT64_MIN, INT64_MAX})
                               .array<float>("f32", kF32, {0.25f, -2})
                               .array<double>("f64", kF64, {0.5, 3})
                               .array<uint8_t>("bool", kBool, {1, 0, 1})
                               .strings("strings", {"a", "", "\xff", "long enough not to be small"})
                               .strings("none", {})
                               .array<float>("no.floats", kF32, {})
                               .build();
  const ModelSource gguf = must(parse(file));
  using Integers = std::vector<int64_t>;
  EXPECT_EQ(array(gguf, "u8").integers(), (Integers{1, 255}));
  EXPECT_EQ(array(gguf, "i8").integers(), (Integers{-1, 127}));
  EXPECT_EQ(array(gguf, "u16").integers(), (Integers{65535}));
  EXPECT_EQ(array(gguf, "i16").integers(), (Integers{-32768}));
  EXPECT_EQ(array(gguf, "u32").integers(), (Integers{4294967295, 1}));
  EXPECT_EQ(array(gguf, "i32").integers(), (Integers{-5, 5}));
  EXPECT_EQ(array(gguf, "u64").integers(), (Integers{int64_t(1) << 62}));
  EXPECT_EQ(array(gguf, "i64").integers(), (Integers{INT64_MIN, INT64_MAX}));
  EXPECT_EQ(array(gguf, "bool").integers(), (Integers{1, 0, 1}));
  EXPECT_EQ(array(gguf, "f32").floats(), (std::vector<float>{0.25f, -2}));
  EXPECT_EQ(array(gguf, "f64").floats(), (std::vector<float>{0.5f, 3}));
  EXPECT_EQ(array(gguf, "strings").strings(),
            (std::vector<std::string_view>{"a", "", "\xff", "long enough not to be small"}));
  EXPECT_EQ(array(gguf, "strings").type, MetadataType::String);
  EXPECT_EQ(array(gguf, "none").count, 0u);
  EXPECT_TRUE(array(gguf, "none").strings().empty());
  EXPECT_TRUE(array(gguf, "no.floats").floats().empty());
  // Of another kind.
  EXPECT_TRUE(array(gguf, "f32").integers().empty());
  EXPECT_TRUE(array(gguf, "i32").floats().empty());
  EXPECT_TRUE(array(gguf, "i32").strings().empty());
}

TEST(Gguf, ArrayWithAWrongCountStaysInItsBytes) {
  const std::string encoded = gguf_string("ab") + le<uint64_t>(1000);
  const MetadataArray strings{MetadataType::String, 1000, bytes_of(encoded)};
  EXPECT_EQ(strings.strings(), (std::vector<std::string_view>{"ab"}));
  const MetadataArray words{MetadataType::U32, 1000, bytes_of(encoded)};
  EXPECT_EQ(words.integers().size(), encoded.size() / 4);
}

TEST(Gguf, Version2) {
  GgufWriter writer;
  writer.version = 2;
  const std::string file = writer.u32("n", 5).floats("t", {2, 3}, {1, 2, 3, 4, 5, 6}).build();
  const ModelSource gguf = must(parse(file));
  EXPECT_EQ(gguf.file_format().version, 2u);
  EXPECT_EQ(gguf.file_bytes(), file.size());
  const StoredTensor* t = gguf.tensors().find("t");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->dim[0], 2);
  EXPECT_EQ(t->dim[1], 3);
  EXPECT_EQ(t->offset, writer.data_begin());
  EXPECT_EQ(read_le<float>(must(gguf.read(*t)).data() + 20), 6.0f);
}

TEST(Gguf, TypesRanksAndAlignment) {
  for (uint64_t alignment : {8, 16, 64, 4096}) {
    GgufWriter writer;
    writer.alignment = alignment;
    const std::string file = writer.u32("general.alignment", uint32_t(alignment))
                                 .tensor("q8", {32, 2, 3, 2}, 8, std::string(34 * 12, 'q'))
                                 .tensor("i2s", {128, 4}, 36, std::string(128 + 32, 'i'))
                                 .tensor("half", {5}, 1, std::string(10, 'h'))
                                 .build();
    const ModelSource gguf = must(parse(file));
    ASSERT_EQ(gguf.tensors().size(), 3u);
    const StoredTensor &q8 = gguf.tensors()[0], &i2s = gguf.tensors()[1], &half = gguf.tensors()[2];
    EXPECT_EQ(q8.rank, 4u);
    EXPECT_EQ(q8.dim[3], 2);
    EXPECT_EQ(q8.bytes, 34u * 12);
    EXPECT_EQ(i2s.type, DType::I2_S);
    EXPECT_EQ(i2s.bytes, 128u + 32);  // 512 values of 2 bits, then the tail
    EXPECT_EQ(half.bytes, 10u);
    EXPECT_EQ(char(must(gguf.read(q8)).back()), 'q');
    EXPECT_EQ(char(must(gguf.read(i2s)).back()), 'i');
    EXPECT_EQ(char(must(gguf.read(half)).front()), 'h');
  }
}

TEST(Gguf, NoTensorsAndNoMetadata) {
  const std::string file = GgufWriter().build();
  const ModelSource gguf = must(parse(file));
  EXPECT_TRUE(gguf.metadata().size() == 0);
  EXPECT_TRUE(gguf.tensors().empty());
}

TEST(Gguf, OpenMoveAndRead) {
  const std::string path = temporary_path("release.gguf");
  std::vector<float> values(1 << 16, 2.5f);
  ASSERT_TRUE(write_file(path, GgufWriter().floats("big", {1 << 16}, values).build()));
  ModelSource first = must(open_gguf(path));
  const ModelSource gguf = std::move(first);  // views must stay right when the object moves
  const StoredTensor* t = gguf.tensors().find("big");
  ASSERT_TRUE(t);
  float last = 0;
  EXPECT_TRUE(gguf.read(*t, t->bytes - 4, &last, 4));
  EXPECT_EQ(last, 2.5f);
  EXPECT_FALSE(gguf.read(*t, t->bytes - 3, &last, 4)) << "behind the tensor";
  EXPECT_TRUE(gguf.is(path));
}

// A download tool that writes the file again while it is read.
TEST(Gguf, AFileThatBecameShorterIsAnError) {
  const std::string path = temporary_path("shrinks.gguf");
  std::vector<float> values(1 << 20, 2.5f);
  const std::string text(3 << 20, 't');
  ASSERT_TRUE(write_file(path, GgufWriter().string("text", text).floats("big", {1 << 20}, values).build()));
  const ModelSource gguf = must(open_gguf(path));
  const StoredTensor* t = gguf.tensors().find("big");
  ASSERT_EQ(truncate(path.c_str(), 4 << 20), 0);
  const auto all = gguf.read(*t);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Code::Malformed);
  for (const std::string& word :
       {path, format("expected {} bytes", gguf.file_bytes()), std::string("found 4194304")})
    EXPECT_NE(all.error().message.find(word), std::string::npos) << all.error().message;
  EXPECT_EQ(gguf.metadata().string("text"), text) << "what was parsed is in memory of its own";
}

}  // namespace
}  // namespace gimbal
