// Importance matrices in both forms; and what is damaged is refused, never read beyond its end.
#include "quantize/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "files/gguf.h"
#include "quantize/importance_sums.h"
#include "support/golden.h"
#include "support/made_gguf.h"

namespace gimbal::test {
namespace {

template <class T>
void append_raw(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string old_form(const std::vector<float>& weights, int32_t calls) {
  std::string file;
  append_raw(file, int32_t(2));
  for (std::string name : {"blk.0.attn_q.weight", "blk.0.ffn_up.weight"}) {
    append_raw(file, int32_t(name.size()));
    file += name;
    append_raw(file, calls);
    append_raw(file, int32_t(weights.size()));
    for (float w : weights) append_raw(file, w);
  }
  append_raw(file, int32_t(7));  // chunks
  append_raw(file, int32_t(4));
  return file + "text";
}

std::string new_form(const std::vector<float>& sums, const std::vector<float>& counts) {
  MadeGguf file;
  file.string("general.type", "imatrix");
  file.floats("blk.0.ffn_up_exps.weight.in_sum2",
              {int64_t(sums.size() / counts.size()), int64_t(counts.size())}, sums);
  file.floats("blk.0.ffn_up_exps.weight.counts", {1, int64_t(counts.size())}, counts);
  return file.build();
}

Result<Importance> parsed_text(const std::string& text) {
  return Importance::parsed(std::as_bytes(std::span(text)), "test.imatrix");
}

TEST(ImportanceFiles, BothFormsGiveMeans) {
  const auto old = parsed_text(old_form({2, 4, 6}, 2));
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->size(), 2u);
  ASSERT_TRUE(old->find("blk.0.ffn_up.weight"));
  EXPECT_EQ(*old->find("blk.0.ffn_up.weight"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(old->find("blk.0.ffn_up"), nullptr);
  for (const int32_t calls : {0, 1}) {
    const auto once = parsed_text(old_form({2, 4, 6}, calls));
    ASSERT_TRUE(once) << once.error().message;
    EXPECT_EQ(*once->find("blk.0.ffn_up.weight"), (std::vector<float>{2, 4, 6})) << calls;
  }
  const auto gguf = parsed_text(new_form({2, 4, 6, 8, 3, 9}, {2, 0, 3}));
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_EQ(*gguf->find("blk.0.ffn_up_exps.weight"), (std::vector<float>{1, 2, 1, 1, 1, 3}));
}

ImportanceSums made_sums() {
  ImportanceSums made;
  made.add("blk.0.ffn_up_exps.weight", {{2, 4, 6, 8, 3, 9}, {2, 0, 600}});
  made.add("blk.0.attn_q.weight", {{1.5, 0.25}, {1024}});
  made.windows = 2, made.window = 512, made.texts = {"a.txt"};
  return made;
}

TEST(ImportanceFiles, WrittenOnesAreReadInBothForms) {
  const ImportanceSums made = made_sums();
  const std::string gguf = temporary_path("made.gguf"), old = temporary_path("made.dat");
  ASSERT_TRUE(made.write_gguf(gguf));
  ASSERT_TRUE(made.write_old(old));
  const auto again = ImportanceSums::open(gguf);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->windows, 2u);
  EXPECT_EQ(again->window, 512u);
  EXPECT_EQ(again->texts, made.texts);
  for (const auto& [name, sums] : made.tensors()) {
    EXPECT_EQ(again->tensors().at(name).squares, sums.squares) << name;
    EXPECT_EQ(again->tensors().at(name).rows, sums.rows) << name;
  }
  // The names and dimensions that llama.cpp reads.
  const auto file = open_gguf(gguf);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->metadata().string("general.type"), "imatrix");
  const StoredTensor* sums = file->tensors().find("blk.0.ffn_up_exps.weight.in_sum2");
  const StoredTensor* counts = file->tensors().find("blk.0.ffn_up_exps.weight.counts");
  ASSERT_TRUE(sums && counts);
  EXPECT_EQ(std::vector<int64_t>(sums->dim, sums->dim + 2), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::vector<int64_t>(counts->dim, counts->dim + 2), (std::vector<int64_t>{1, 3}));

  const auto from_old = Importance::open(old), from_gguf = Importance::open(gguf);
  ASSERT_TRUE(from_old && from_gguf);
  for (const auto& [name, of] : made.tensors())
    for (size_t i = 0; i < of.squares.size(); i++) {
      const double rows = of.rows[i / of.columns()], mean = rows > 0 ? of.squares[i] / rows : 1;
      EXPECT_FLOAT_EQ((*from_old->find(name))[i], float(mean));
      EXPECT_FLOAT_EQ((*from_gguf->find(name))[i], float(mean));
    }
  const std::string bytes = *read_file(old);
  int32_t tail[2];
  std::memcpy(tail, bytes.data() + bytes.size() - 8 - 5, 8);
  EXPECT_EQ(tail[0], 2) << "windows";
  EXPECT_EQ(tail[1], 5) << "the length of a.txt";
}

// A file is written piece by piece; this tensor is longer than a piece.
TEST(ImportanceFiles, LongTensorsAreWrittenWhole) {
  std::vector<double> squares(700'000);
  for (size_t i = 0; i < squares.size(); i++) squares[i] = double(i % 4099) / 4;
  ImportanceSums made;
  made.add("blk.0.attn_q.weight", {squares, {1024}});
  made.windows = 1, made.window = 512, made.texts = {"a.txt"};
  const std::string path = temporary_path("long.gguf");
  ASSERT_TRUE(made.write_gguf(path));
  const auto again = ImportanceSums::open(path);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->tensors().at("blk.0.attn_q.weight").squares == squares);
}

TEST(ImportanceFiles, SumsAreAdded) {
  ImportanceSums sum = made_sums();
  ASSERT_TRUE(sum.add(made_sums(), "again"));
  EXPECT_EQ(sum.tensors().at("blk.0.attn_q.weight").squares, (std::vector<double>{3, 0.5}));
  EXPECT_EQ(sum.tensors().at("blk.0.attn_q.weight").rows, (std::vector<double>{2048}));
  EXPECT_EQ(sum.windows, 4u);
  EXPECT_EQ(sum.texts.size(), 1u);
  ImportanceSums other;
  other.add("blk.0.attn_q.weight", {{1, 2, 3}, {1}});
  EXPECT_FALSE(sum.add(other, "other"));
  const std::string old = old_form({2, 4, 6}, 2);
  const auto uncounted = ImportanceSums::parsed(std::as_bytes(std::span(old)), "old.dat");
  ASSERT_TRUE(uncounted);
  EXPECT_EQ(uncounted->windows, 7u);
  EXPECT_EQ(uncounted->texts, std::vector<std::string>{"text"});
  const auto refused = sum.add(*uncounted, "old.dat");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("old.dat"), std::string::npos);
}

TEST(ImportanceFiles, DamagedOnesAreRefused) {
  const std::string whole = old_form({2, 4, 6}, 2);
  const size_t needed = whole.size() - 12;  // without the name of the text
  for (size_t n = 0; n < needed; n++) EXPECT_FALSE(parsed_text(whole.substr(0, n))) << n;
  EXPECT_FALSE(parsed_text(old_form({2, -4, 6}, 2)));
  EXPECT_FALSE(parsed_text(old_form({2, NAN, 6}, 2)));
  EXPECT_FALSE(parsed_text(old_form({2, INFINITY, 6}, 2)));
  std::string huge;
  append_raw(huge, int32_t(1)), append_raw(huge, int32_t(0x7fffffff));
  EXPECT_FALSE(parsed_text(huge + "abc"));
  EXPECT_FALSE(parsed_text(new_form({1, 2, NAN}, {1})));
  MadeGguf without;
  without.floats("blk.0.ffn_up.weight.in_sum2", {2, 1}, {1, 2});
  const auto lacks = parsed_text(without.build());
  ASSERT_FALSE(lacks);
  EXPECT_EQ(lacks.error().code, Code::Malformed);
  EXPECT_NE(lacks.error().message.find("test.imatrix"), std::string::npos);
  EXPECT_FALSE(Importance::open("/no/such/file"));
}

}  // namespace
}  // namespace gimbal::test
