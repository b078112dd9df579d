// Tensors of a folder by their recipes: pieces, rows in another order, f32 from halves, fp8 with scales. Any
// part of a tensor that is read must be that part of the whole, and the whole is computed here value by
// value.
#include "huggingface/recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "files/safetensors.h"
#include "support/golden.h"
#include "support/safetensors_writer.h"
#include "tensor/half.h"

namespace gimbal::test {
namespace {

// Values that a bf16 has exactly: small whole numbers.
std::string whole_numbers(int64_t n, int first) {
  std::string out;
  for (int64_t i = 0; i < n; i++) {
    const uint16_t v = float_to_bf16(float((first + i * 7) % 251));
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out;
}
float number_at(int64_t i, int first) { return float((first + i * 7) % 251); }
std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
template <class T>
T at(const std::vector<std::byte>& bytes, size_t i) {
  T v;
  std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof v);
  return v;
}

Recipe joined(std::vector<Recipe::Piece> pieces, int64_t row_values) {
  Recipe r;
  r.pieces = std::move(pieces), r.row_values = row_values;
  return r;
}

// A file of stored tensors, and what recipes make of them.
class RecipeTest : public testing::Test {
 protected:
  void store(const std::string& name, const char* type, std::vector<int64_t> shape,
             const std::string& bytes) {
    file_.add(name, type, std::move(shape), bytes);
  }
  // A tensor of these dims, the fastest first, by a recipe.
  void make(DType type, std::vector<int64_t> dims, Recipe recipe) {
    StoredTensor t{};
    names_.push_back("t" + std::to_string(names_.size()));
    t.name = names_.back(), t.type = type, t.rank = uint32_t(dims.size());
    std::fill(std::begin(t.dim), std::end(t.dim), 1);
    std::copy(dims.begin(), dims.end(), t.dim);
    t.bytes = t.stored = uint64_t(row_bytes(type, t.values()));
    made_.add(t);
    recipes_.push_back(std::move(recipe));
  }
  // All tensors are stored before.
  const TensorTable& stored() {
    if (!shards_) {
      shards_ = std::make_shared<PlainReader>("'folder'");
      static int n = 0;
      path_ = temporary_path("recipe" + std::to_string(n++) + ".safetensors");
      EXPECT_TRUE(write_file(path_, file_.text()));
      const auto ok = add_safetensors(*shards_, shards_->add(std::move(*FileBytes::open(path_))), path_, 0,
                                      stored_, nullptr);
      EXPECT_TRUE(ok) << ok.error().message;
      shards_->serve(stored_);
    }
    return stored_;
  }
  uint32_t stored_index(const std::string& name) { return stored().find(name)->index; }
  FolderReader& reader() {
    if (!reader_) {
      reader_ =
          std::make_unique<FolderReader>("'folder'", shards_, stored(), std::deque<FileBytes>{}, nullptr);
      reader_->serve(made_, recipes_);
    }
    return *reader_;
  }
  std::vector<std::byte> whole(size_t index) {
    std::vector<std::byte> bytes(size_t(made_[index].bytes));
    const auto ok = reader().read(index, 0, bytes.data(), bytes.size());
    EXPECT_TRUE(ok) << ok.error().message;
    return bytes;
  }
  // Parts that begin and end anywhere.
  void expect_parts(size_t index) {
    const std::vector<std::byte> all = whole(index);
    uint32_t state = 7;
    const auto below = [&](size_t n) { return size_t((state = state * 1664525u + 1013904223u) >> 8) % n; };
    for (int i = 0; i < 200; i++) {
      const size_t begin = below(all.size() + 1), n = below(all.size() - begin + 1);
      std::vector<std::byte> part(n + 8, std::byte(0xa5));
      ASSERT_TRUE(reader().read(index, begin, part.data(), n));
      ASSERT_TRUE(std::equal(part.begin(), part.begin() + long(n), all.begin() + long(begin)))
          << begin << " " << n;
      for (size_t b = n; b < part.size(); b++) ASSERT_EQ(part[b], std::byte(0xa5)) << "behind the part";
    }
    std::byte none{};
    EXPECT_TRUE(reader().read(index, all.size(), &none, 0));
    EXPECT_FALSE(reader().read(index, all.size(), &none, 1));
    EXPECT_FALSE(reader().read(index, ~uint64_t(0), &none, 2));
    EXPECT_FALSE(reader().read(made_.size(), 0, &none, 0));
  }

  SafetensorsWriter file_;
  TensorTable made_, stored_;
  std::deque<std::string> names_;
  std::vector<Recipe> recipes_;
  std::string path_;
  std::shared_ptr<PlainReader> shards_;
  std::unique_ptr<FolderReader> reader_;
};

TEST_F(RecipeTest, RowsAsTheyAreStored) {
  store("w", "BF16", {10, 6}, whole_numbers(60, 3));
  make(DType::BF16, {6, 10}, joined({{stored_index("w"), 0, 10}}, 6));
  make(DType::BF16, {6, 4}, joined({{stored_index("w"), 5, 4}}, 6));
  for (size_t t : {0, 1}) {
    expect_parts(t);
    const auto bytes = whole(t);
    const auto mapped = reader().map(t);
    ASSERT_TRUE(mapped) << mapped.error().message;
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapped->begin(), mapped->end()));
    for (size_t i = 0; i < bytes.size() / 2; i++)
      ASSERT_EQ(bf16_to_float(at<uint16_t>(bytes, i)), number_at(int64_t(i + t * 30), 3)) << i;
  }
}

TEST_F(RecipeTest, PiecesFollowOneAnother) {
  store("a", "BF16", {3, 5}, whole_numbers(15, 1));
  store("b", "BF16", {1, 5}, whole_numbers(5, 100));
  store("c", "BF16", {4, 5}, whole_numbers(20, 50));
  make(DType::BF16, {5, 6},
       joined({{stored_index("a"), 1, 2}, {stored_index("b"), 0, 1}, {stored_index("c"), 1, 3}}, 5));
  expect_parts(0);
  const auto bytes = whole(0);
  for (int64_t i = 0; i < 30; i++) {
    const float expected = i < 10   ? number_at(i + 5, 1)
                           : i < 15 ? number_at(i - 10, 100)
                                    : number_at(i - 10, 50);
    ASSERT_EQ(bf16_to_float(at<uint16_t>(bytes, size_t(i))), expected) << i;
  }
  EXPECT_FALSE(reader().map(0)) << "the bytes do not lie together";
}

TEST_F(RecipeTest, RowsInAnotherOrder) {
  store("w", "BF16", {9, 4}, whole_numbers(36, 11));
  const std::vector<uint32_t> order = {2, 3, 4, 0, 6, 5, 1};
  Recipe r = joined({{stored_index("w"), 1, 7}}, 4);
  r.order = order;
  make(DType::BF16, {4, 7}, r);
  expect_parts(0);
  const auto bytes = whole(0);
  for (size_t row = 0; row < order.size(); row++)
    for (size_t i = 0; i < 4; i++)
      ASSERT_EQ(bf16_to_float(at<uint16_t>(bytes, row * 4 + i)),
                number_at(int64_t((order[row] + 1) * 4 + i), 11))
          << row;
  EXPECT_FALSE(reader().map(0));
}

// Longer than what is converted at once.
TEST_F(RecipeTest, HalvesBecomeF32AndNormsGetOneAdded) {
  constexpr int64_t kValues = 40000;
  store("n", "BF16", {kValues}, whole_numbers(kValues, 5));
  store("m", "F32", {3}, floats({0.5f, -1.0f, 3.0f}));
  Recipe halves = joined({{stored_index("n"), 0, kValues}}, 1), norm = joined({{stored_index("m"), 0, 3}}, 1),
         given = joined({{stored_index("n"), 0, 2}}, 1);
  halves.to_f32 = norm.to_f32 = true, norm.change = Recipe::Change::AddOne, given.made = floats({8, 9});
  make(DType::F32, {kValues}, halves), make(DType::F32, {3}, norm), make(DType::F32, {2}, given);
  for (size_t t : {0, 1, 2}) {
    expect_parts(t);
    EXPECT_FALSE(reader().map(t));
  }
  const auto bytes = whole(0);
  for (int64_t i = 0; i < kValues; i++) ASSERT_EQ(at<float>(bytes, size_t(i)), number_at(i, 5)) << i;
  const auto more = whole(1);
  for (size_t i = 0; i < 3; i++) EXPECT_EQ(at<float>(more, i), (std::vector<float>{1.5f, 0, 4})[i]);
  EXPECT_EQ(at<float>(whole(2), 1), 9);
}

// The files of a folder count as one: weights, and texts that decide what tokens are.
TEST_F(RecipeTest, FilesAndTheirIdentity) {
  store("w", "BF16", {1, 4}, whole_numbers(4, 1));
  stored();
  const auto with = [&](const std::string& text) {
    const std::string config = temporary_path("config-" + text);
    EXPECT_TRUE(write_file(config, text));
    std::filesystem::last_write_time(config, std::filesystem::last_write_time(path_));
    std::deque<FileBytes> others;
    others.push_back(std::move(*FileBytes::open(config)));
    EXPECT_TRUE(others[0].head(text.size()));
    const FolderReader reader("'folder'", shards_, stored_, std::move(others), nullptr);
    EXPECT_TRUE(reader.is(config));
    EXPECT_TRUE(reader.is(path_));
    EXPECT_FALSE(reader.is(config + "x"));
    EXPECT_EQ(reader.file_bytes(), shards_->file_bytes());
    return reader.identity().headers;
  };
  EXPECT_EQ(with("{}"), with("{}"));
  EXPECT_NE(with("{}"), with("[]"));
}

// A file that became shorter is an error of every recipe that reads it.
TEST_F(RecipeTest, AFileThatIsCutIsSaid) {
  store("s", "F32", {1}, floats({1}));
  store("w", "BF16", {9, 4}, whole_numbers(36, 11));
  const uint32_t w = stored_index("w");
  Recipe turned = joined({{w, 0, 9}}, 4), wide = turned;
  turned.order = {8, 7, 6, 5, 4, 3, 2, 1, 0}, wide.to_f32 = true;
  make(DType::BF16, {4, 9}, joined({{w, 0, 9}}, 4)), make(DType::BF16, {4, 9}, turned);
  make(DType::F32, {36}, wide), make(DType::BF16, {4, 18}, joined({{w, 0, 9}, {w, 0, 9}}, 4));
  make(DType::BF16, {8, 9}, joined({{w, 0, 9, int32_t(stored_index("s")), 9, 8}}, 8));
  reader();
  std::filesystem::resize_file(path_, 4);
  EXPECT_FALSE(reader().map(0));
  EXPECT_FALSE(reader().map(made_.size()));
  for (size_t t = 0; t < made_.size(); t++)
    for (const size_t bytes : {size_t(3), size_t(made_[t].bytes)}) {
      std::vector<std::byte> part(bytes);
      EXPECT_FALSE(reader().read(t, 0, part.data(), bytes)) << t;
    }
}

// All codes of E4M3 ("FP8 Formats for Deep Learning", table 1): bias 7, subnormals, 448 at most, one NaN of
// each sign. Blocks of scales whose last ones are cut.
TEST_F(RecipeTest, Fp8WithScalesOfBlocks) {
  constexpr int64_t kRows = 12, kColumns = 28;
  std::string codes;
  for (int64_t i = 0; i < kRows * kColumns; i++) codes += char(i);
  const std::vector<float> scales = {1, 2, 0.5f, 4, 0.25f, 8, 16, 32, 0.125f};  // 3 x 3
  store("s", "F32", {3, 3}, floats(scales));
  store("q", "F32", {kRows, kColumns / 4}, codes);  // as bytes: the recipe says what they mean
  const Recipe::Piece piece{stored_index("q"), 2, 10, int32_t(stored_index("s")), 4, 12};
  make(DType::BF16, {kColumns, 10}, joined({piece}, kColumns));
  expect_parts(0);
  const auto bytes = whole(0);
  for (int64_t row = 0; row < 10; row++)
    for (int64_t column = 0; column < kColumns; column++) {
      const auto code = uint8_t((row + 2) * kColumns + column);
      const int exponent = code >> 3 & 15, mantissa = code & 7;
      const double scale = scales[size_t((row + 2) / 4 * 3 + column / 12)];
      const float found = bf16_to_float(at<uint16_t>(bytes, size_t(row * kColumns + column)));
      if (exponent == 15 && mantissa == 7) {
        EXPECT_TRUE(std::isnan(found)) << int(code);
        continue;
      }
      const double value = exponent ? std::pow(2.0, exponent - 7) * (1 + mantissa / 8.0) : mantissa / 512.0;
      EXPECT_EQ(found, float((code & 128 ? -value : value) * scale)) << int(code);
    }
  EXPECT_FALSE(reader().map(0));
}

}  // namespace
}  // namespace gimbal::test
