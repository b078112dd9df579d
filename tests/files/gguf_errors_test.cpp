// One file for each way a GGUF file can be wrong, and what the reader must say about it: the file, the byte,
// what was expected there and what was found.
#include <gtest/gtest.h>

#include "base/file.h"
#include "files/gguf.h"
#include "support/gguf_writer.h"
#include "support/golden.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

// `what` is the error after "'m.gguf' at byte N: ", or the beginning of it.
void expect_error(const std::string& file, uint64_t byte, const std::string& what,
                  Code code = Code::Malformed) {
  SCOPED_TRACE(what);
  const auto parsed = parse_gguf({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "m.gguf");
  ASSERT_FALSE(parsed) << "was accepted";
  EXPECT_EQ(parsed.error().code, code);
  const std::string expected = "'m.gguf' at byte " + std::to_string(byte) + ": " + what;
  EXPECT_EQ(parsed.error().message.substr(0, expected.size()), expected);
  EXPECT_NE(parsed.error().message.find("expected "), std::string::npos) << parsed.error().message;
  EXPECT_NE(parsed.error().message.find(", found "), std::string::npos) << parsed.error().message;
  EXPECT_FALSE(parsed.error().remedy.empty());
}

constexpr uint64_t kFirstKey = GgufWriter::kMetadataBegin;

TEST(GgufErrors, Header) {
  expect_error("", 0, "header: expected a GGUF file, found an empty file");
  expect_error("GGU", 0, "magic number: expected 4 bytes, found 3 bytes before the end of the file");
  expect_error("<html>\x1b[31m....", 0, "magic number: expected 'GGUF', found '<htm'");
  expect_error("\x1b[31m...........", 0, "magic number: expected 'GGUF', found '\\x1b[31'");
  expect_error("GGUF\3", 4, "version: expected 4 bytes, found 1 bytes");
  expect_error("GGUF" + le(3) + "1234567", 8, "number of tensors: expected 8 bytes, found 7 bytes");
  expect_error("GGUF" + le(3) + le<uint64_t>(0) + "123", 16, "number of metadata entries: expected 8 bytes");
}

TEST(GgufErrors, VersionAndByteOrder) {
  GgufWriter writer;
  writer.version = 0;
  expect_error(writer.build(), 4, "version: expected 2 or 3, found 0");
  writer.version = 1;
  expect_error(writer.build(), 4, "version: expected 2 or 3, found 1", Code::Unsupported);
  writer.version = 4;
  expect_error(writer.build(), 4, "version: expected 2 or 3, found 4", Code::Unsupported);
  writer.version = 0x03000000;
  expect_error(writer.build(), 4, "version: expected 2 or 3, little-endian, found 3 in a big-endian file",
               Code::Unsupported);
  writer.magic = "FUGG";
  expect_error(writer.build(), 0,
               "magic number: expected 'GGUF', a little-endian file, found 'FUGG', a big-endian file",
               Code::Unsupported);
}

TEST(GgufErrors, CountsBeyondTheFile) {
  GgufWriter writer;
  writer.u32("k", 1);
  for (uint64_t count : {uint64_t(2), uint64_t(1) << 40, UINT64_MAX}) {
    writer.tensor_count = count;
    expect_error(
        writer.build(), 8,
        "number of tensors: expected at most 0, the most that the rest of the file can hold, found " +
            std::to_string(count));
  }
  writer.tensor_count = 0;
  writer.entry_count = UINT64_MAX;
  expect_error(writer.build(), 16,
               "number of metadata entries: expected at most 1, the most that the rest of the file");
  writer.u32("l", 1);
  writer.entry_count = 1;
  writer.tensor_count = 1;  // the second entry is then read as a tensor of rank 4 (the id of u32)
  expect_error(writer.build(), kFirstKey + 17 + 9 + 4,
               "dimension of tensor 'l': expected 8 bytes, found 4 bytes before the end of the file");
}

TEST(GgufErrors, Keys) {
  expect_error(GgufWriter().u32("", 1).u32("k", 1).build(), kFirstKey,
               "length of key of metadata entry 1 of 2: expected 1 to 65535 bytes, found 0");
  expect_error(GgufWriter().u32(std::string(65536, 'k'), 1).build(), kFirstKey,
               "length of key of metadata entry 1 of 1: expected 1 to 65535 bytes, found 65536");
  const std::string longest = GgufWriter().u32(std::string(65535, 'k'), 1).build();
  EXPECT_TRUE(parse_gguf({reinterpret_cast<const std::byte*>(longest.data()), longest.size()}, "m.gguf"));
  for (const char* bad : {"\x80", "a\xff", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82"})
    expect_error(GgufWriter().u32(bad, 1).build(), kFirstKey + 8,
                 "key of metadata entry 1 of 1: expected valid UTF-8, found '");
  expect_error(GgufWriter().u32("a.key", 1).u32("b", 1).u32("a.key", 2).build(), kFirstKey + 21 + 17,
               "key of metadata entry 'a.key': expected a new key, found a duplicate");
  std::string file = GgufWriter().u32("a.key", 1).build();
  file.resize(kFirstKey + 8 + 3);  // in the middle of the key; 14 bytes are the least for an entry
  expect_error(file, 16, "number of metadata entries: expected at most 0");
  file = GgufWriter().u32("a.longer.key", 1).build();
  file.resize(kFirstKey + 8 + 9);
  expect_error(file, kFirstKey, "length of key of metadata entry 1 of 1: expected at most 9, the bytes left");
}

TEST(GgufErrors, Values) {
  const std::string padding(64, 0);
  expect_error(GgufWriter().raw("k", 13, padding).build(), kFirstKey + 9,
               "value type of metadata entry 'k': expected a type from 0 to 12, found 13");
  expect_error(GgufWriter().raw("k", UINT32_MAX, padding).build(), kFirstKey + 9,
               "value type of metadata entry 'k': expected a type from 0 to 12, found 4294967295");
  expect_error(GgufWriter().raw("k", kU64, "1234").build(), kFirstKey + 13,
               "value of metadata entry 'k': expected 8 bytes, found 4 bytes before the end of the file");
  expect_error(GgufWriter().scalar<uint8_t>("k", kBool, 2).build(), kFirstKey + 13,
               "bool of metadata entry 'k': expected 0 or 1, found 2");
  for (uint64_t length : {uint64_t(65), uint64_t(1) << 63, UINT64_MAX, UINT64_MAX - 7})
    expect_error(
        GgufWriter().raw("k", kString, le(length) + padding).build(), kFirstKey + 13,
        "length of value of metadata entry 'k': expected at most 64, the bytes left in the file, found " +
            std::to_string(length));
}

TEST(GgufErrors, Arrays) {
  const std::string padding(64, 0);
  constexpr uint64_t value = kFirstKey + 13;
  expect_error(GgufWriter().raw("k", kArray, le(13) + padding).build(), value,
               "element type of metadata entry 'k': expected a type from 0 to 12, found 13");
  expect_error(GgufWriter().raw("k", kArray, le<uint32_t>(kArray) + padding).build(), value,
               "element type of metadata entry 'k': expected numbers, bools or strings, found arrays inside",
               Code::Unsupported);
  struct {
    uint32_t type;
    uint64_t count, most;
  } const wrong[] = {{kU8, 65, 64},
                     {kI16, 33, 32},
                     {kF32, uint64_t(1) << 62, 16},  // times 4 is 2^64
                     {kF64, (uint64_t(1) << 61) + 1, 8},
                     {kString, 9, 8},
                     {kString, UINT64_MAX, 8}};
  for (const auto& w : wrong)
    expect_error(GgufWriter().raw("k", kArray, le(w.type) + le(w.count) + padding).build(), value + 4,
                 "number of elements of metadata entry 'k': expected at most " + std::to_string(w.most) +
                     ", the most that the rest of the file can hold, found " + std::to_string(w.count));
  expect_error(GgufWriter().array<uint8_t>("k", kBool, {0, 1, 255}).build(), value + 12 + 2,
               "bool of metadata entry 'k': expected 0 or 1, found 255");
  const std::string two =
      le<uint32_t>(kString) + le<uint64_t>(2) + gguf_string("abc") + le<uint64_t>(99) + "1234";
  expect_error(
      GgufWriter().raw("k", kArray, two).build(), value + 12 + 11,
      "length of element of metadata entry 'k': expected at most 4, the bytes left in the file, found 99");
}

TEST(GgufErrors, Alignment) {
  constexpr uint64_t value = kFirstKey + 8 + 17 + 4;
  for (uint32_t bad : {0u, 1u, 4u, 12u, 24u, 33u, 0x80000001u, UINT32_MAX})
    expect_error(GgufWriter().u32("general.alignment", bad).build(), value, "general.alignment: expected ");
  expect_error(GgufWriter().u32("general.alignment", 24).build(), value,
               "general.alignment: expected a power of two, 8 or more, found 24");
  expect_error(GgufWriter().scalar<int64_t>("general.alignment", kI64, -32).build(), value,
               "general.alignment: expected an integer from 0 to 2147483648, found -32");
  expect_error(GgufWriter().string("general.alignment", "32").build(), value,
               "general.alignment: expected an integer from 0 to 2147483648, found a value of type string");
  // Padding that alone runs past the end of the file.
  GgufWriter writer;
  const std::string file = writer.u32("general.alignment", 1u << 31).tensor_at("t", {1}, 0, 0).build();
  expect_error(file, writer.tensors_begin() + 8 + 1 + 4 + 8 + 4,
               "data of tensor 't': expected 4 bytes (f32 [1])");
}

TEST(GgufErrors, TensorNames) {
  const std::string data(64, 0);
  expect_error(GgufWriter().tensor("", {1, 1}, 0, data).build(), 24,
               "length of name of tensor 1 of 1: expected 1 to 65535 bytes, found 0");
  expect_error(GgufWriter().tensor(std::string(70000, 't'), {1}, 0, data).build(), 24,
               "length of name of tensor 1 of 1: expected 1 to 65535 bytes, found 70000");
  expect_error(GgufWriter().tensor("t\xff", {1}, 0, data).build(), 32,
               "name of tensor 1 of 1: expected valid UTF-8, found 't\\xff'");
  expect_error(GgufWriter().tensor("t", {16}, 0, data).tensor("t", {16}, 0, data).build(), 24 + 33,
               "name of tensor 't': expected a new tensor, found a duplicate");
}

TEST(GgufErrors, Dimensions) {
  const std::string data(64, 0);
  constexpr uint64_t rank = 24 + 9, dims = rank + 4;
  expect_error(GgufWriter().tensor("t", {}, 0, data).build(), rank,
               "rank of tensor 't': expected 1 to 4 dimensions, found 0");
  expect_error(GgufWriter().tensor("t", {1, 1, 1, 1, 1}, 0, data).build(), rank,
               "rank of tensor 't': expected 1 to 4 dimensions, found 5");
  expect_error(GgufWriter().tensor("t", {0}, 0, data).build(), dims,
               "dimension 0 of tensor 't': expected 1 to 2147483647, found 0");
  expect_error(GgufWriter().tensor("t", {1, 0}, 0, data).build(), dims + 8,
               "dimension 1 of tensor 't': expected 1 to 2147483647, found 0");
  expect_error(GgufWriter().tensor("t", {1, 1, 0x80000000}, 0, data).build(), dims + 16,
               "dimension 2 of tensor 't': expected 1 to 2147483647, found 2147483648");
  expect_error(GgufWriter().tensor("t", {UINT64_MAX}, 0, data).build(), dims,
               "dimension 0 of tensor 't': expected 1");
  const uint64_t most = 0x7fffffff;
  expect_error(GgufWriter().tensor("t", {most, most, most, most}, 0, data).build(), rank,
               "dimensions of tensor 't': expected fewer than 2^63 values and bytes in all, found "
               "[2147483647 x 2147483647 x 2147483647 x 2147483647]");
  // 2^61 values of 4 bytes: the values fit, the bytes do not.
  expect_error(GgufWriter().tensor("t", {1 << 30, 1 << 30, 2}, 0, data).build(), rank,
               "dimensions of tensor 't'");
  // 2^63 values of 2 bits: the bytes fit, the values do not.
  expect_error(GgufWriter().tensor("t", {1 << 30, 1 << 30, 8}, 36, data).build(), rank,
               "dimensions of tensor 't'");
}

TEST(GgufErrors, Types) {
  const std::string data(64, 0);
  constexpr uint64_t type = 24 + 9 + 4 + 8;
  for (uint32_t unknown : {4u, 5u, 31u, 33u, 37u, 1000u, 0xffffu, UINT32_MAX})
    expect_error(GgufWriter().tensor("t", {32}, unknown, data).build(), type,
                 "type of tensor 't': expected a tensor type that this build knows, found type id " +
                     std::to_string(unknown),
                 Code::Unsupported);
  expect_error(GgufWriter().tensor("t", {33}, 8, data).build(), type,
               "type of tensor 't': expected rows of a multiple of 32 values for q8_0, found rows of 33");
  expect_error(GgufWriter().tensor("t", {128}, 12, data).build(), type,
               "type of tensor 't': expected rows of a multiple of 256 values for q4_k, found rows of 128");
}

TEST(GgufErrors, Offsets) {
  const std::string data(64, 0);
  constexpr uint64_t offset = 24 + 9 + 4 + 8 + 4;
  for (uint64_t bad : {uint64_t(1), uint64_t(16), UINT64_MAX})
    expect_error(GgufWriter().tensor_at("t", {1}, 0, bad).data(data).build(), offset,
                 "offset of tensor 't': expected a multiple of 32, the file's alignment, found " +
                     std::to_string(bad));
  for (uint64_t bad : {uint64_t(64), uint64_t(1) << 40, UINT64_MAX - 31})
    expect_error(GgufWriter().tensor_at("t", {1}, 0, bad).data(data).build(), offset,
                 "data of tensor 't': expected 4 bytes (f32 [1]) at 64 + " + std::to_string(bad) +
                     ", found a file of 128 bytes");
  expect_error(GgufWriter().tensor_at("t", {17}, 0, 0).data(data).build(), offset,
               "data of tensor 't': expected 68 bytes (f32 [17]) at 64 + 0, found a file of 128 bytes");
  // The tail of I2_S must be there too.
  expect_error(GgufWriter().tensor("t", {128}, 36, std::string(32, 0)).build(), offset,
               "data of tensor 't': expected 64 bytes (i2_s [128]) at 64 + 0, found a file of 96 bytes");
  // The data may be cut off in the padding before it as well.
  std::string file = GgufWriter().tensor("t", {16}, 0, data).build();
  file.resize(offset + 8);
  expect_error(file, offset, "data of tensor 't'");
}

TEST(GgufErrors, Overlaps) {
  const std::string data(128, 0);
  // By one byte: 17 blocks of mxfp4 are 289 bytes.
  expect_error(
      GgufWriter().tensor_at("a", {544}, 39, 0).tensor_at("b", {1}, 0, 288).data(std::string(292, 0)).build(),
      24 + 9 + 4 + 8 + 4 + 33,
      "data of tensor 'b': expected bytes of its own, before 96 or from 385 on, found bytes 384 to 387, "
      "shared with tensor 'a'");
  constexpr uint64_t first = 24 + 9 + 4 + 8 + 4, second = first + 33;
  expect_error(GgufWriter().tensor_at("a", {16}, 0, 0).tensor_at("b", {1}, 0, 32).data(data).build(), second,
               "data of tensor 'b': expected bytes of its own, before 96 or from 160 on, found bytes 128 to "
               "131, shared with tensor 'a'");
  expect_error(GgufWriter().tensor_at("a", {1}, 0, 32).tensor_at("b", {16}, 0, 0).data(data).build(), first,
               "data of tensor 'a': expected bytes of its own, ");
  // Not beside each other in the table, and the same bytes twice.
  GgufWriter three;
  three.tensor_at("a", {8}, 0, 0).tensor_at("b", {8}, 0, 32).tensor_at("c", {8}, 0, 0).data(data);
  expect_error(
      three.build(), second + 33,
      "data of tensor 'c': expected bytes of its own, before 128 or from 160 on, found bytes 128 to 159, "
      "shared with tensor 'a'");
  const std::string apart =
      GgufWriter().tensor_at("a", {8}, 0, 96).tensor_at("b", {8}, 0, 0).data(data).build();
  EXPECT_TRUE(parse_gguf({reinterpret_cast<const std::byte*>(apart.data()), apart.size()}, "m.gguf"))
      << "tensors in another order, with a gap, are fine";
}

TEST(GgufErrors, HostileNamesAreHarmlessInMessages) {
  const auto message = [](const std::string& name) {
    const std::string file = GgufWriter().tensor(name, {0}, 0, "").build();
    const auto parsed = parse_gguf({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "m.gguf");
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_NE(message("a\x1b[2J\nb\xc2\x9b\x7f").find("'a\\x1b[2J\\x0ab\\xc2\\x9b\\x7f'"), std::string::npos);
  EXPECT_NE(message("gr\xc3\xbc\xc3\x9f").find("'gr\xc3\xbc\xc3\x9f'"), std::string::npos);
  EXPECT_LT(message(std::string(60000, 'x')).size(), 300u);
}

TEST(GgufErrors, Files) {
  auto opened = open_gguf(temporary_path("absent.gguf"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::NotFound);
  EXPECT_NE(opened.error().message.find("absent.gguf"), std::string::npos);
  opened = open_gguf(golden_dir());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::Failed);
  const std::string path = temporary_path("empty.gguf");
  ASSERT_TRUE(write_file(path, ""));
  opened = open_gguf(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::Malformed);
  EXPECT_NE(opened.error().message.find(path + "' at byte 0: header: expected a GGUF file"),
            std::string::npos);
}

}  // namespace
}  // namespace gimbal
