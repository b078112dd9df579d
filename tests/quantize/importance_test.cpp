// Importance matrices in both forms; and what is damaged is refused, never read beyond its end.
#include "quantize/importance.h"

#include <gtest/gtest.h>

#include <cmath>

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
  const auto gguf = parsed_text(new_form({2, 4, 6, 8, 3, 9}, {2, 0, 3}));
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_EQ(*gguf->find("blk.0.ffn_up_exps.weight"), (std::vector<float>{1, 2, 1, 1, 1, 3}));
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
