// Options of a GPU backend: numbers, flags, and errors.
#include "gpu/options.h"

#include <gtest/gtest.h>

namespace gimbal::gpu {
namespace {

Options options_of(const char* lines) {
  Options o;
  const Failure f = Options::parse(lines, &o);
  EXPECT_FALSE(f) << f.text;
  return o;
}

TEST(GpuOptions, AreKeysAndValues) {
  Options o = options_of("a=1\nb=x=y\na=2\nempty=");
  EXPECT_EQ(o.take("b"), "x=y");
  EXPECT_EQ(o.take("empty"), "");
  EXPECT_EQ(o.take("c"), std::nullopt);
  EXPECT_EQ(o.unknown().text, "unknown option 'a=1'");
  EXPECT_EQ(o.take("a"), "2") << "the last one counts";
  EXPECT_EQ(o.take("a"), std::nullopt);
  EXPECT_FALSE(o.unknown());
  EXPECT_FALSE(options_of(nullptr).unknown());
  const Failure f = Options::parse("a=1\nb", &o);
  EXPECT_EQ(f.code, Failure::Invalid);
  EXPECT_EQ(f.text, "'b' is not an option: expected key=value");
}

TEST(GpuOptions, Numbers) {
  uint64_t n = 7;
  EXPECT_FALSE(options_of("m=1").take_number("n", &n));
  EXPECT_EQ(n, 7u) << "it was not named";
  EXPECT_FALSE(options_of("n=18446744073709551615").take_number("n", &n));
  EXPECT_EQ(n, UINT64_MAX);
  for (const char* wrong : {"n=", "n=-1", "n=1x", "n= 1", "n=0x1", "n=1.5", "n=18446744073709551616"}) {
    const Failure f = options_of(wrong).take_number("n", &n);
    EXPECT_EQ(f.code, Failure::Invalid) << wrong;
    EXPECT_EQ(f.text.find("n must be a whole number, not '"), 0u) << f.text;
  }
}

TEST(GpuOptions, FlagsAreZeroOrOne) {
  for (const bool before : {false, true}) {
    bool flag = before;
    EXPECT_FALSE(options_of("").take_flag("f", &flag));
    EXPECT_EQ(flag, before) << "it was not named";
    EXPECT_FALSE(options_of("f=1").take_flag("f", &flag));
    EXPECT_TRUE(flag);
    flag = before;
    EXPECT_FALSE(options_of("f=0").take_flag("f", &flag));
    EXPECT_FALSE(flag);
  }
  bool flag = false;
  EXPECT_EQ(options_of("f=2").take_flag("f", &flag).text, "f must be 0 or 1, not 2");
  EXPECT_EQ(options_of("f=yes").take_flag("f", &flag).text, "f must be a whole number, not 'yes'");
}

}  // namespace
}  // namespace gimbal::gpu
