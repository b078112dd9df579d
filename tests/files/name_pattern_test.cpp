// Patterns of tensor names: POSIX extended regular expressions, with what other programs' patterns have.
#include "files/name_pattern.h"

#include <gtest/gtest.h>

namespace gimbal::test {
namespace {

bool found(const std::string& pattern, const std::string& name) {
  const auto p = NamePattern::compile(pattern);
  EXPECT_TRUE(p) << pattern << ": " << p.error().message;
  return p && p->found_in(name);
}

TEST(NamePattern, IsFoundAnywhereInAName) {
  EXPECT_TRUE(found("ffn_down", "blk.7.ffn_down.weight"));
  EXPECT_FALSE(found("^ffn_down", "blk.7.ffn_down.weight"));
  EXPECT_TRUE(found("attn_(k|v)\\.", "blk.0.attn_v.weight"));
  EXPECT_FALSE(found("attn_(k|v)\\.", "blk.0.attn_q.weight"));
  EXPECT_FALSE(found("blk\\.1\\.", "blk.11.attn_q.weight"));
}

TEST(NamePattern, UnderstandsDigitsAndGroupsOfOtherPrograms) {
  EXPECT_TRUE(found("blk\\.\\d+\\.ffn", "blk.42.ffn_up.weight"));
  EXPECT_FALSE(found("blk\\.\\d+\\.ffn", "blk.d.ffn_up.weight"));
  EXPECT_FALSE(found("^\\d$", "d"));
  EXPECT_TRUE(found("blk\\.\\d{2}\\.", "blk.42.ffn_up.weight"));
  EXPECT_FALSE(found("blk\\.\\d{2}\\.", "blk.4.ffn_up.weight"));
  EXPECT_TRUE(found("ffn_(?:gate|up)_exps", "blk.3.ffn_up_exps.weight"));
  EXPECT_FALSE(found("ffn_(?:gate|up)_exps", "blk.3.ffn_down_exps.weight"));
  // Within brackets a backslash stands for itself.
  EXPECT_TRUE(found("^[\\d]$", "d"));
  EXPECT_TRUE(found("^[ab\\d]$", "d"));
  EXPECT_FALSE(found("^[ab\\d]$", "5"));
  EXPECT_TRUE(found("^[a(?:]$", "?"));
  EXPECT_TRUE(found("^[]d]+\\d$", "]d5"));
  EXPECT_TRUE(found("^[^]d]\\d$", "a5"));
}

TEST(NamePattern, WhatIsNoPatternIsRefused) {
  const std::string group = NamePattern::compile("(").error().message,
                    set = NamePattern::compile("[").error().message;
  EXPECT_NE(group.substr(group.find("is no pattern")), set.substr(set.find("is no pattern")))
      << "each has its own reason";
  for (const char* wrong : {"(", "[a", "a\\"}) {
    const auto p = NamePattern::compile(wrong);
    ASSERT_FALSE(p) << wrong;
    EXPECT_EQ(p.error().code, Code::Usage);
    EXPECT_NE(p.error().message.find("is no pattern of names"), std::string::npos) << p.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
