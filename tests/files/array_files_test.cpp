// Safetensors, npy and npz files: the verdicts on hostile and odd ones are those of other programs (the
// `safetensors` library and NumPy). What is written here is read back by the readers, and its bytes are those
// that the formats ask for.
#include <gtest/gtest.h>

#include <fstream>
#include <span>

#include "base/file.h"
#include "base/sha256.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "files/zip.h"
#include "support/golden.h"
#include "tensor/half.h"

namespace gimbal::test {
namespace {

// All values of a tensor, row-major whatever order the file has.
std::string row_major(const ModelSource& source, const StoredTensor& t) {
  const auto bytes = source.read(t);
  if (!bytes) return "an error: " + bytes.error().message;
  std::string out(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (!t.transposed) return out;
  const size_t size = info(t.type).bytes;
  // dim[0] varies fastest in the file, and slowest in the array.
  std::string turned(out.size(), 0);
  for (int64_t i = 0; i < t.values(); i++) {
    int64_t rest = i, at = 0;
    for (uint32_t d = 0; d < t.rank; d++) at = at * t.dim[d] + rest % t.dim[d], rest /= t.dim[d];
    turned.replace(size_t(at) * size, size, out, size_t(i) * size, size);
  }
  return turned;
}

std::vector<int64_t> named_dims(const StoredTensor& t) {
  std::vector<int64_t> dims(t.dim, t.dim + t.rank);
  if (!t.transposed) std::reverse(dims.begin(), dims.end());
  return dims;
}

// Opens and reads everything. The first error.
Status read_all(const std::string& path) {
  auto source = open_arrays(path);
  if (!source) return source.error();
  for (const StoredTensor& t : source->tensors())
    if (auto bytes = source->read(t); !bytes) return bytes.error();
  return Done{};
}

TEST(ArrayFiles, VerdictsAreThoseOfOtherPrograms) {
  int refused = 0, accepted = 0;
  const auto verdicts = read_json(golden_dir() + "/hostile/verdicts.json");
  for (const auto& c : verdicts["cases"]) {
    const std::string file = c["file"], verdict = c["verdict"];
    if (file.starts_with("dir-")) continue;  // tests/huggingface
    SCOPED_TRACE(file);
    const std::string path = golden_dir() + "/hostile/" + file;
    const Status all = read_all(path);
    if (verdict == "refuse") {
      ASSERT_FALSE(all);
      EXPECT_GT(all.error().message.size(), 20u);
      EXPECT_NE(all.error().message.find(file), std::string::npos) << all.error().message;
      refused++;
    }
    if (verdict != "accept") continue;
    bool known = true;
    for (const auto& t : c["tensors"]) known = known && dtype_named(std::string(t["dtype"]));
    if (!known) {  // a format of numbers that this build does not have is named
      ASSERT_FALSE(all);
      EXPECT_EQ(all.error().code, Code::Unsupported);
      continue;
    }
    ASSERT_TRUE(all) << all.error().message;
    const ModelSource source = *open_arrays(path);
    EXPECT_EQ(source.tensors().size(), c["tensors"].size());
    for (const auto& t : c["tensors"]) {
      const StoredTensor* mine = source.tensors().find(std::string(t["name"]));
      ASSERT_TRUE(mine) << t["name"];
      EXPECT_EQ(info(mine->type).name, std::string(t["dtype"]));
      EXPECT_EQ(named_dims(*mine), t["dims"].get<std::vector<int64_t>>());
      Sha256 sha;
      sha.add(row_major(source, *mine));
      EXPECT_EQ(sha.hex(), std::string(t["sha256"]));
      if (const auto mapped = source.reader().map(mine->index)) {
        const auto read = source.read(*mine);
        EXPECT_TRUE(std::equal(mapped->begin(), mapped->end(), read->begin(), read->end()));
      } else {
        EXPECT_TRUE(file.ends_with(".npz")) << mapped.error().message;
      }
      accepted++;
    }
  }
  EXPECT_GE(refused, 20);
  EXPECT_GE(accepted, 5);
}

// An archive whose entry unpacks to 48 MiB is listed without unpacking it, and a piece of it needs no more
// memory than that.
TEST(ArrayFiles, BombIsListedAndReadInPieces) {
  const auto source = open_npz(golden_dir() + "/hostile/bomb.npz");
  if (!source) return;  // refusing is right, too
  ASSERT_EQ(source->tensors().size(), 1u);
  const StoredTensor& t = source->tensors()[0];
  float last;
  ASSERT_GT(t.bytes, sizeof last);
  EXPECT_TRUE(source->read(t, t.bytes - sizeof last, &last, sizeof last));
}

struct Made {
  std::string name;
  DType type;
  std::vector<int64_t> dims;
};
TensorTable table_of(const std::vector<Made>& made) {
  TensorTable table;
  for (const Made& m : made) {
    StoredTensor t{};
    t.name = m.name, t.type = m.type, t.rank = uint32_t(m.dims.size());
    std::fill(std::begin(t.dim), std::end(t.dim), 1);
    for (uint32_t i = 0; i < t.rank; i++) t.dim[t.rank - 1 - i] = m.dims[i];
    t.bytes = uint64_t(t.values()) * info(m.type).bytes;
    table.add(t);
  }
  return table;
}
std::byte byte_at(size_t tensor, uint64_t offset) {
  return std::byte(uint8_t(tensor * 77 + offset * 31 + offset / 256));
}
Status give(size_t tensor, uint64_t offset, void* to, size_t n) {
  for (size_t i = 0; i < n; i++) static_cast<std::byte*>(to)[i] = byte_at(tensor, offset + i);
  return Done{};
}

TEST(ArrayFiles, WrittenSafetensorsAreReadBack) {
  const std::vector<Made> made = {{"half", DType::F16, {3, 5}},
                                  {"scalar", DType::F64, {}},
                                  {"none", DType::F32, {0, 4}},
                                  {"f\"\\\n\xc3\xa9", DType::I8, {7}},
                                  {"large", DType::F32, {700, 1000}}};
  const std::string path = temporary_path("written.safetensors");
  const TensorTable table = table_of(made);
  ASSERT_TRUE(write_safetensors(path, table, {{"format", "pt"}, {"by", "a test"}}, give));
  const auto source = open_safetensors(path);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->metadata().string("by"), "a test");
  ASSERT_EQ(source->tensors().size(), made.size());
  for (size_t i = 0; i < made.size(); i++) {
    const StoredTensor* t = source->tensors().find(made[i].name);
    ASSERT_TRUE(t) << made[i].name;
    EXPECT_EQ(t->type, made[i].type);
    EXPECT_EQ(named_dims(*t), made[i].dims);
    EXPECT_EQ(t->offset % info(t->type).bytes, 0u) << made[i].name;
    const auto bytes = source->read(*t);
    ASSERT_TRUE(bytes);
    for (size_t k = 0; k < bytes->size(); k++) ASSERT_EQ((*bytes)[k], byte_at(i, k));
  }
  EXPECT_FALSE(write_safetensors(path, table_of({{"q", DType::Q4_0, {32}}}), {}, give));
  EXPECT_TRUE(open_safetensors(path)) << "a refused write leaves the file as it was";
}

TEST(ArrayFiles, WrittenNpyIsReadBackAndAligned) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {4}, {2, 3, 5}, {0, 2}}) {
    const std::string path = temporary_path("written.npy");
    ASSERT_TRUE(write_npy(path, DType::I16, dims, give));
    const auto source = open_npy(path);
    ASSERT_TRUE(source) << source.error().message;
    const StoredTensor& t = source->tensors()[0];
    EXPECT_EQ(t.offset % 64, 0u);
    EXPECT_EQ(named_dims(t), dims);
    const auto bytes = source->read(t);
    ASSERT_TRUE(bytes);
    for (size_t k = 0; k < bytes->size(); k++) ASSERT_EQ((*bytes)[k], byte_at(0, k));
  }
}

// The size of a safetensors file's header takes its first 8 bytes, and the header has at least "{}".
TEST(ArrayFiles, SafetensorsThatEndBeforeTheirHeader) {
  const auto error = [](size_t bytes) {
    const std::string zeros(bytes, '\0');
    const auto source = parse_safetensors(std::as_bytes(std::span(zeros)), "short");
    return source ? "no error" : source.error().message;
  };
  EXPECT_EQ(error(0), "'short': expected a safetensors file, found 0 bytes");
  EXPECT_EQ(error(7), "'short': expected a safetensors file, found 7 bytes");
  EXPECT_EQ(error(8), "'short': the header at byte 8: expected a JSON object");
}

// Every file cut short, and every byte of a header changed, is refused or gives tensors inside the file.
TEST(ArrayFiles, DamagedFilesAreRefusedOrStayInside) {
  for (const char* name :
       {"good-plain.safetensors", "good-order.safetensors", "good-fortran.npy", "good-deflated.npz"}) {
    SCOPED_TRACE(name);
    const std::string whole = *read_file(golden_dir() + "/hostile/" + name);
    const auto parse = [&](const std::string& text) {
      const Bytes bytes = std::as_bytes(std::span(text));
      return std::string(name).ends_with("npy")   ? parse_npy(bytes, "damaged")
             : std::string(name).ends_with("npz") ? parse_npz(bytes, "damaged")
                                                  : parse_safetensors(bytes, "damaged");
    };
    for (size_t n = 0; n < whole.size(); n++) EXPECT_FALSE(parse(whole.substr(0, n))) << n;
    for (size_t at = 0; at < whole.size(); at++)
      for (const int flip : {1, 4, 32, 128, 255}) {
        std::string changed = whole;
        changed[at] = char(changed[at] ^ flip);
        const auto source = parse(changed);
        if (!source) continue;
        for (const StoredTensor& t : source->tensors()) {
          ASSERT_LE(t.bytes, 1u << 20);
          static_cast<void>(source->read(t));
        }
      }
  }
}

TEST(ArrayFiles, NpyHeadersAreReadAsNumPyWritesThem) {
  const auto with = [](const std::string& header) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += char(header.size()), file += '\0';
    file += header + std::string(24, '\0');
    return parse_npy(std::as_bytes(std::span(file)), "made").operator bool();
  };
  EXPECT_TRUE(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n"));
  EXPECT_TRUE(with("{\"shape\":(6,),\"fortran_order\":True,\"descr\":\"=f4\"}"));
  EXPECT_TRUE(with("{'descr': '<f8', 'fortran_order': False, 'shape': (), }"));
  EXPECT_FALSE(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2), }"));
  EXPECT_FALSE(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }"));
  EXPECT_FALSE(with("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }"));
  EXPECT_FALSE(with("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_FALSE(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}"));
  EXPECT_FALSE(with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_FALSE(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x"));
  for (const char* lacks :
       {"{'fortran_order': False, 'shape': (2, 3), }", "{'descr': '<f4', 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, }", "{}"})
    EXPECT_FALSE(with(lacks)) << lacks;
}

}  // namespace
}  // namespace gimbal::test
