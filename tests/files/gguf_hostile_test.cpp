// Every reference model, cut off and changed in thousands of ways: the reader must answer with an error that
// says something, or with an object that is true. It must not crash, hang, leave the bytes it was given, or
// let a file of a few kilobytes ask for gigabytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#include "base/file.h"
#include "files/gguf.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/operator_new.h"
#include "tensor/format.h"

namespace {

// The largest single allocation that is allowed right now; a larger one is noted and refused.
size_t allocation_limit = SIZE_MAX;
size_t largest_refused = 0;

}  // namespace

static void allocating(size_t bytes) {
  if (bytes > allocation_limit) {
    largest_refused = std::max(largest_refused, bytes);
    throw std::bad_alloc();
  }
}

namespace gimbal {
namespace {

using namespace gimbal::test;

struct AllocationGuard {
  explicit AllocationGuard(uint64_t file_bytes) { allocation_limit = 16 * file_bytes + 1'000'000; }
  ~AllocationGuard() { allocation_limit = SIZE_MAX; }
};

// A number in the header of a right file, found by walking it without the help of the reader under test.
struct Field {
  uint64_t at;
  uint32_t bytes;
};

struct Header {
  std::vector<Field> fields;  // counts, lengths, types, ranks, dims, offsets, and the ends of values
  uint64_t end = 0;
};

class Walker {
 public:
  explicit Walker(std::string_view file) : file_(file) {}
  Header walk() {
    at_ = 0;
    number(4);
    number(4);
    const uint64_t tensors = number(8), entries = number(8);
    for (uint64_t i = 0; i < entries; i++) {
      text();
      value(uint32_t(number(4)));
    }
    for (uint64_t i = 0; i < tensors; i++) {
      text();
      const uint64_t rank = number(4);
      for (uint64_t d = 0; d < rank; d++) number(8);
      number(4);
      number(8);
    }
    header_.end = at_;
    return header_;
  }

 private:
  uint64_t number(uint32_t bytes, bool noted = true) {
    if (at_ + bytes > file_.size()) throw std::runtime_error("the walker of the test left the file");
    if (noted) header_.fields.push_back({at_, bytes});
    uint64_t value = 0;
    std::memcpy(&value, file_.data() + at_, bytes);
    at_ += bytes;
    return value;
  }
  void text(bool noted = true) { at_ += number(8, noted); }
  void value(uint32_t type) {
    constexpr uint32_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kString) return text();
    if (type != kArray) {
      number(kSizes[type]);
      return;
    }
    const auto element = uint32_t(number(4));
    const uint64_t count = number(8);
    // Of the elements every 41st will do: vocabularies are long.
    for (uint64_t i = 0; i < count; i++)
      if (element == kString) text(i % 41 == 0);
      else number(kSizes[element], i % 41 == 0);
  }

  std::string_view file_;
  uint64_t at_ = 0;
  Header header_;
};

struct Tally {
  uint64_t accepted = 0, refused = 0, sum = 0;
};

bool inside(Bytes part, Bytes whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

// Parses, and holds the answer against what was promised. Answers whether the file was accepted.
bool check(const std::byte* data, size_t size, Tally& tally) {
  const Bytes bytes(data, size);
  AllocationGuard guard(size);
  largest_refused = 0;
  try {
    const auto parsed = parse_gguf(bytes, "mutated.gguf");
    if (!parsed) {
      tally.refused++;
      const Error& e = parsed.error();
      EXPECT_NE(e.message.find("'mutated.gguf' at byte "), std::string::npos) << e.message;
      EXPECT_TRUE(e.code == Code::Malformed || e.code == Code::Unsupported) << e.message;
      EXPECT_LT(e.message.size(), 1000u);
      return false;
    }
    tally.accepted++;
    std::map<const std::byte*, const std::byte*> taken;  // begin to end, so in order of begin
    for (const StoredTensor& t : parsed->tensors()) {
      EXPECT_LE(t.offset, size) << t.name;
      EXPECT_LE(t.bytes, size - t.offset) << t.name;
      EXPECT_TRUE(taken.emplace(data + t.offset, data + t.offset + t.bytes).second) << t.name;
      for (const int64_t d : t.dim) EXPECT_TRUE(d > 0 && d <= INT32_MAX) << t.name;
      EXPECT_GT(t.bytes, 0u);
      const int64_t rows = t.dim[1] * t.dim[2] * t.dim[3];
      EXPECT_EQ(int64_t(t.bytes), rows * row_bytes(t.type, t.dim[0]) + tensor_tail_bytes(t.type));
      if (::testing::Test::HasFailure()) return true;
      tally.sum += uint64_t(data[t.offset]) + uint64_t(data[t.offset + t.bytes - 1]);
    }
    const std::byte* free = data;
    for (const auto& [begin, end] : taken) {
      EXPECT_GE(begin, free) << "tensors overlap";
      free = end;
    }
    for (const auto& [key, entry] : parsed->metadata()) {
      tally.sum += parsed->metadata().number(key).value_or(0) > 0;
      if (const auto* array = std::get_if<MetadataArray>(&entry.value)) {
        EXPECT_TRUE(inside(array->data, bytes)) << key;
        const auto strings = array->strings();
        if (array->type == MetadataType::String) { EXPECT_EQ(strings.size(), array->count) << key; }
        for (const auto s : strings) tally.sum += s.empty() ? 0 : uint8_t(s.front()) + uint8_t(s.back());
        for (const auto i : array->integers()) tally.sum += uint64_t(i);
        tally.sum += array->floats().size();
      }
    }
  } catch (const std::exception& e) {
    ADD_FAILURE() << "an exception: " << e.what() << ", largest refused allocation " << largest_refused;
  }
  EXPECT_EQ(largest_refused, 0u);
  return true;
}

struct Model {
  std::string path, file;
  Header header;
};

const std::vector<Model>& models() {
  static const std::vector<Model> all = [] {
    std::vector<Model> list;
    int files = 0;
    for (const char* folder : {"stories", "arch", "quant"})
      for (const std::string& path : golden_files(folder, ".gguf")) {
        if (fewer_cases() && files++ % 4) continue;
        Model m{path, *read_file(path), {}};
        m.header = Walker(m.file).walk();
        list.push_back(std::move(m));
      }
    return list;
  }();
  return all;
}

// A copy that ends where its allocation ends, so that AddressSanitizer sees a read behind it.
std::unique_ptr<std::byte[]> exact_copy(std::string_view bytes) {
  auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return copy;
}

TEST(GgufHostile, CutOffAnywhere) {
  Tally tally;
  std::mt19937_64 random(1);
  for (const Model& m : models()) {
    SCOPED_TRACE(m.path);
    std::vector<uint64_t> cuts = {0, m.header.end};
    for (const Field& f : m.header.fields) cuts.insert(cuts.end(), {f.at, f.at + 1, f.at + f.bytes});
    for (int i = 0; i < 100; i++) cuts.push_back(random() % m.header.end);
    for (const uint64_t cut : cuts) {
      const auto copy = exact_copy(std::string_view(m.file).substr(0, cut));
      EXPECT_FALSE(check(copy.get(), cut, tally)) << "accepted with " << cut << " bytes";
    }
    // In the data a cut must always be noticed too, as these files have no spare byte but the last padding.
    for (int i = 0; i < 20; i++) {
      const uint64_t cut = m.header.end + random() % (m.file.size() - m.header.end - 32);
      const auto copy = exact_copy(std::string_view(m.file).substr(0, cut));
      EXPECT_FALSE(check(copy.get(), cut, tally)) << "accepted with " << cut << " bytes";
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(tally.accepted, 0u);
  RecordProperty("refused", std::to_string(tally.refused));
}

// The last bytes of a file: those of its last tensor must all be there, and only the padding behind it may be
// missing. The right answer is worked out here from the file's own table, not by the reader.
TEST(GgufHostile, CutOffInTheLastBytes) {
  size_t with_padding = 0, without = 0;
  auto check_cuts = [&](const std::string& file, uint64_t data_end) {
    ASSERT_LE(data_end, file.size());
    ASSERT_LT(file.size() - data_end, 64u);
    (data_end == file.size() ? without : with_padding)++;
    Tally tally;
    for (uint64_t cut = file.size() - 64; cut < file.size(); cut++) {
      const auto copy = exact_copy(std::string_view(file).substr(0, cut));
      EXPECT_EQ(check(copy.get(), cut, tally), cut >= data_end) << cut << " of " << file.size() << " bytes";
    }
  };
  for (const Model& m : models()) {
    SCOPED_TRACE(m.path);
    auto whole = parse_gguf(std::as_bytes(std::span(m.file)), m.path);
    ASSERT_TRUE(whole);
    uint64_t end = 0;
    for (const StoredTensor& t : whole->tensors()) end = std::max(end, t.offset + t.bytes);
    check_cuts(m.file, end);
  }
  GgufWriter w;  // 9 floats: the last byte of the data, and then that of the file
  w.floats("a", {32}, std::vector<float>(32, 1.f)).floats("b", {9}, std::vector<float>(9, 2.f));
  const std::string padded = w.build();
  const uint64_t end = w.data_begin() + 4 * (32 + 9);
  check_cuts(padded, end);
  check_cuts(padded.substr(0, end), end);
  EXPECT_GT(with_padding, 0u);
  EXPECT_GT(without, 0u);
}

TEST(GgufHostile, BitsFlipped) {
  Tally tally;
  std::mt19937_64 random(2);
  for (const Model& m : models()) {
    SCOPED_TRACE(m.path);
    const auto copy = exact_copy(m.file);
    for (int i = 0; i < 300; i++) {
      // Half of them in the numbers that matter, half anywhere; one to four bits at once.
      uint64_t at[4];
      uint8_t bit[4];
      const auto flips = 1 + random() % 4;
      for (uint64_t f = 0; f < flips; f++) {
        const Field& field = m.header.fields[random() % m.header.fields.size()];
        at[f] = i % 2 ? field.at + random() % field.bytes : random() % m.header.end;
        bit[f] = uint8_t(1 << random() % 8);
        copy[at[f]] ^= std::byte(bit[f]);
      }
      check(copy.get(), m.file.size(), tally);
      for (uint64_t f = 0; f < flips; f++) copy[at[f]] ^= std::byte(bit[f]);
      if (HasFailure()) FAIL() << "flip " << i << " of byte " << at[0];
    }
  }
  // Both answers must occur, or the flips were not where they should be.
  EXPECT_GT(tally.accepted, models().size());
  EXPECT_GT(tally.refused, models().size());
}

TEST(GgufHostile, NumbersSetToExtremes) {
  Tally tally;
  for (const Model& m : models()) {
    SCOPED_TRACE(m.path);
    const auto copy = exact_copy(m.file);
    for (const Field& f : m.header.fields) {
      uint64_t original = 0;
      std::memcpy(&original, copy.get() + f.at, f.bytes);
      const uint64_t left = m.file.size() - f.at;
      for (const uint64_t extreme :
           {uint64_t(0), uint64_t(1), uint64_t(9), original - 1, original + 1, original * 2, left,
            left - f.bytes, left - f.bytes + 1, uint64_t(INT32_MAX), uint64_t(UINT32_MAX), uint64_t(1) << 32,
            uint64_t(INT64_MAX), uint64_t(1) << 63, UINT64_MAX / 8 + 1, UINT64_MAX - 31, UINT64_MAX - f.at,
            UINT64_MAX}) {
        std::memcpy(copy.get() + f.at, &extreme, f.bytes);
        check(copy.get(), m.file.size(), tally);
        if (HasFailure()) FAIL() << f.bytes << " bytes at " << f.at << " set to " << extreme;
      }
      std::memcpy(copy.get() + f.at, &original, f.bytes);
    }
  }
  EXPECT_GT(tally.accepted, 0u);
  EXPECT_GT(tally.refused, tally.accepted);
}

TEST(GgufHostile, RandomBytesBehindARightBeginning) {
  Tally tally;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; i++) {
    std::string file =
        "GGUF" + le<uint32_t>(2 + random() % 2) + le<uint64_t>(random() % 4) + le<uint64_t>(random() % 4);
    // Small numbers are likelier to be taken for lengths and types than random bytes are.
    for (auto n = random() % 400; n > 0; n--)
      file += char(random() % 3 ? random() % 14 * (random() % 2) : random());
    const auto copy = exact_copy(file);
    check(copy.get(), file.size(), tally);
    if (HasFailure()) FAIL() << "file " << i;
  }
  EXPECT_GT(tally.refused, 10000u);
}

// The guard itself must be able to fail.
TEST(GgufHostile, TheGuardRefusesALargeAllocation) {
  AllocationGuard guard(1000);
  largest_refused = 0;
  EXPECT_THROW(::operator delete(::operator new(2'000'000)),
               std::bad_alloc);  // a plain call: cannot be optimised away
  EXPECT_EQ(largest_refused, 2'000'000u);
}

}  // namespace
}  // namespace gimbal
