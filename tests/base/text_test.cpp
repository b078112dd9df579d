// UTF-8 by the Unicode standard's tables, what terminals obey, words that are nearly right, and Base64 by
// RFC 4648.
#include "base/text.h"

#include <gtest/gtest.h>

namespace gimbal {
namespace {

// The steps of a text: how many bytes each has, and w(hole), b(roken) or c(ut).
std::string steps(std::string_view text) {
  std::string all;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step s = utf8_step(text, at);
    all += std::to_string(s.bytes) + "wbc"[s.kind];
    at += s.bytes;
  }
  return all;
}

// Unicode 15, table 3-7 (well-formed bytes) and table 3-8 to 3-11 (what is replaced by one character).
TEST(Utf8, StepsAreThoseOfTheStandard) {
  const std::pair<std::string_view, const char*> kSteps[] = {
      {"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "1w2w3w4w"},
      {"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "2w2w3w3w3w3w"},
      {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "4w4w"},
      {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", "1b1b1b1b1b1b1b1b1w"},  // table 3-8
      {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", "1b1b1b1b1b1b1b1b1w"},  // table 3-9
      {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "1b1b1b1b1b1w1b1b1w"},  // table 3-10
      {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "2b1b3b2b1w"},          // table 3-11
      {"\xc3", "1c"},
      {"\xe2\x82", "2c"},
      {"a\xf0\x9f\x98", "1w3c"},
  };
  for (const auto& [text, expected] : kSteps) {
    EXPECT_EQ(steps(text), expected) << testing::PrintToString(text);
    EXPECT_EQ(is_utf8(text), std::string_view(expected).find_first_of("bc") == std::string_view::npos);
  }
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, CharactersThatTerminalsObey) {
  for (const std::string_view c :
       {"\x01", "\n", "\x1b", "\x1f", "\x7f", "\xc2\x80", "\xc2\x9f", "\xd8\x9c",  // C0, DEL, C1, U+061C
        "\xe2\x80\x8b", "\xe2\x80\x8f",                                            // U+200B, U+200F
        "\xe2\x80\xa8", "\xe2\x80\xae",                                            // U+2028, U+202E
        "\xe2\x81\xa0", "\xe2\x81\xa9", "\xef\xbb\xbf"})                           // U+2060, U+2069, U+FEFF
    EXPECT_TRUE(acts_on_terminals(c)) << testing::PrintToString(c);
  for (const std::string_view c : {" ", "~", "\xc2\xa0", "\xd8\x9b", "\xd8\x9d",  // U+00A0, U+061B, U+061D
                                   "\xe2\x80\x8a", "\xe2\x80\x90",                // U+200A, U+2010
                                   "\xe2\x80\xa7", "\xe2\x80\xaf",                // U+2027, U+202F
                                   "\xe2\x81\x9f", "\xe2\x81\xaa",                // U+205F, U+206A
                                   "\xef\xbb\xbe", "\xef\xbc\x80", "\xf0\x9f\x98\x80"})
    EXPECT_FALSE(acts_on_terminals(c)) << testing::PrintToString(c);
  EXPECT_EQ(escaped("a\xe2\x80\xae\xc3\xa9\n\xff"), "a\\xe2\\x80\\xae\xc3\xa9\\x0a\\xff");
}

TEST(Quoted, Has80BytesOfALongText) {
  const std::string most(80, 'm');
  EXPECT_EQ(gimbal::quoted(most), "'" + most + "'");
  EXPECT_EQ(gimbal::quoted(most + "n"), "'" + most + "...'");
  EXPECT_EQ(gimbal::quoted("a\nb"), "'a\\x0ab'");
  EXPECT_EQ(gimbal::quoted(""), "''");
  const std::string letters = std::string(79, 'm') + "\xc3\xa9";
  EXPECT_EQ(gimbal::quoted(letters), "'" + std::string(79, 'm') + "...'") << "no letter is cut";
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& known) {
  return nearest(word, known).value_or("none");
}

// A third of the letters may be wrong. To leave out, to insert, to change and to swap two neighbours is one
// mistake.
TEST(Nearest, WordsThatAreAlmostRight) {
  EXPECT_EQ(nearest_of("abcdef", {"uvwxyz", "bcdef"}), "bcdef");
  EXPECT_EQ(nearest_of("bcdef", {"uvwxyz", "abcdef"}), "abcdef");
  EXPECT_EQ(nearest_of("abcdef", {"abxyef"}), "abxyef");
  EXPECT_EQ(nearest_of("abcdef", {"axyzef"}), "none");
  EXPECT_EQ(nearest_of("abcdef", {"xyabcdef"}), "xyabcdef");
  EXPECT_EQ(nearest_of("abcdef", {"xyzabcdef"}), "none");
  EXPECT_EQ(nearest_of("hte", {"the"}), "the");
  EXPECT_EQ(nearest_of("abcdef", {"badcef"}), "badcef") << "two swaps";
  EXPECT_EQ(nearest_of("abcdef", {"badcfe"}), "none") << "three swaps";
  EXPECT_EQ(nearest_of("abcdef", {"xbcdey", "xbcdef", "xycdef"}), "xbcdef") << "the nearest";
  EXPECT_EQ(nearest_of("a", {"b"}), "b");
  EXPECT_EQ(nearest_of("a", {"bc"}), "none");
}

TEST(Nearest, BeginningsOfWords) {
  EXPECT_EQ(nearest_of("temp", {"top_k", "temperature"}), "temperature");
  EXPECT_EQ(nearest_of("te", {"top_k", "temperature"}), "none") << "two letters begin many words";
  EXPECT_EQ(nearest_of("port", {"portable", "sort"}), "sort") << "an almost right word goes first";
  EXPECT_EQ(nearest_of("ature", {"temperature"}), "none");
}

TEST(Nearest, LongWordsAreNoTypingErrors) {
  const std::string word(63, 'w');
  EXPECT_EQ(nearest_of(word + "x", {word + "y"}), word + "y");
  EXPECT_EQ(nearest_of(word + "wx", {word + "wy"}), "none");
}

TEST(Base64, TestVectors) {  // RFC 4648, section 10; the last one has the letters 62 and 63
  for (const auto& [bytes, text] : {std::pair<std::string_view, std::string_view>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xfb\xff", "+/8="}}) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(base64_decoded(text), std::string(bytes));
  }
  std::string all;
  for (int i = 0; i < 256; i++) all += char(i);
  EXPECT_EQ(base64_decoded(base64(all)), all);
}

// Padding stands at the end alone, and only where it must.
TEST(Base64, WhatIsNone) {
  for (const char* text : {"Z",        "Zg",    "Zg=",      "Z===", "====",  "=g==",      "Zg=A",
                           "Zg==Zm8=", "Zm9v=", "Zm9v====", "Zm9 ", "Zm9\n", "Zm-v",      "Zm_v",
                           "Zm@v",     "Zm[v",  "Zm`v",     "Zm{v", "Zm:v",  "Zm\xc3\xa9"})
    EXPECT_FALSE(base64_decoded(text)) << text;
}

}  // namespace
}  // namespace gimbal
