// What addresses mean, and which file of a repository is the model that is meant.
#include "fetch/address.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "fetch/choice.h"

namespace gimbal::test {
namespace {

ModelAddress parsed(const char* text) {
  auto a = parse_address(text);
  EXPECT_TRUE(a) << text << ": " << a.error().message;
  return a ? *a : ModelAddress{};
}

TEST(Address, OfARepository) {
  unsetenv("HF_ENDPOINT");
  for (const char* text : {"hf.co/Org/Re-po_1.5", "hf://Org/Re-po_1.5", "huggingface.co/Org/Re-po_1.5",
                           "https://huggingface.co/Org/Re-po_1.5/", "https://hf.co/Org/Re-po_1.5?x=1"}) {
    const ModelAddress a = parsed(text);
    EXPECT_EQ(a.repository, "Org/Re-po_1.5") << text;
    EXPECT_EQ(a.name(), "hf.co/Org/Re-po_1.5") << text;
    EXPECT_TRUE(is_address(text));
  }
  EXPECT_EQ(parsed("hf.co/a/b:Q8_0").quant, "Q8_0");
  EXPECT_EQ(parsed("hf.co/a/b/c/d.gguf").file, "c/d.gguf");
  const ModelAddress page = parsed("https://huggingface.co/a/b/blob/dev/c%20d.gguf?download=true");
  EXPECT_EQ(page.file, "c d.gguf");
  EXPECT_EQ(page.revision, "dev");
  EXPECT_EQ(url_path("c d/\xc3\xa9.gguf"), "c%20d/%C3%A9.gguf");
}

TEST(Address, OfAFileAnywhere) {
  const ModelAddress a = parsed("https://user:pass@Example.org:8443/x/y.gguf?sig=secret#top");
  EXPECT_EQ(a.url, "https://user:pass@example.org:8443/x/y.gguf?sig=secret");
  EXPECT_EQ(a.name(), "https://example.org:8443/x/y.gguf") << "no secret is in the name";
  const auto url = Url::parse(a.url);
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin(), "https://example.org:8443");
  EXPECT_FALSE(url->is_loopback());
  for (const char* here : {"http://127.0.0.1:80/", "http://localhost/", "http://[::1]:9/"})
    EXPECT_TRUE(Url::parse(here)->is_loopback()) << here;
  EXPECT_FALSE(Url::parse("http://localhost.example/")->is_loopback());
  EXPECT_FALSE(Url::parse("http://127.evil@example.org/")->is_loopback());
}

TEST(Address, WhatIsNoneIsRefused) {
  for (const char* text : {"hf.co/", "hf.co/a", "hf.co/a/", "hf.co/../b", "hf.co/a/..", "hf.co/a/b/../c.gguf",
                           "hf.co/a/b/c.bin", "hf.co/a/b:", "hf.co/a/b:../x", "hf.co/a/b/%2e%2e/c.gguf",
                           "hf.co/a/b/c%0a.gguf", "ftp://a/b.gguf", "https:///b.gguf", "https://a/b.gguf\n",
                           "https://a/x/../b.gguf", "https://a/%2e%2e/b.gguf", "https://a/b"}) {
    auto a = parse_address(text);
    ASSERT_FALSE(a) << text;
    EXPECT_EQ(a.error().code, Code::Usage) << text;
  }
}

const std::vector<RemoteName> kFiles = {
    {"README.md", 5},
    {"m-7B-Q4_K_S.gguf", 40},
    {"m-7B-IQ2_XS.gguf", 20},
    {"m-7B.BF16.gguf", 140},
    {"q8/m-7B-Q8_0-00001-of-00002.gguf", 30},
    {"q8/m-7B-Q8_0-00002-of-00002.gguf", 50},
    {"m-7B-Q6_K-00001-of-00003.gguf", 60},  // whose other parts are missing
    {"m-7B-UD-Q4_K_XL.gguf", 45},
    {"mmproj-m-7B-F16.gguf", 9},
    {"m-7B-fp16.gguf", 141},
};

TEST(FileChoice, NamesOfQuantizations) {
  std::map<std::string, uint64_t> found;
  for (const FileChoice& c : choices(kFiles)) found[c.quant] = c.bytes;
  const std::map<std::string, uint64_t> expected{{"Q4_K_S", 40}, {"IQ2_XS", 20},     {"BF16", 140},
                                                 {"Q8_0", 80},   {"UD-Q4_K_XL", 45}, {"F16", 141}};
  EXPECT_EQ(found, expected);
}

std::string chosen(const char* address) {
  auto c = choose(kFiles, parsed(address));
  return c ? c->path : c.error().message;
}

TEST(FileChoice, IsTheOneThatIsNamedOrTheFirstOfTheOrder) {
  EXPECT_EQ(chosen("hf.co/a/b"), "m-7B-Q4_K_S.gguf");
  EXPECT_EQ(chosen("hf.co/a/b:q8_0"), "q8/m-7B-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(chosen("hf.co/a/b:Q4_K_XL"), "m-7B-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen("hf.co/a/b:UD-Q4_K_XL"), "m-7B-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen("hf.co/a/b:m-7b-iq2_xs"), "m-7B-IQ2_XS.gguf");
  EXPECT_EQ(chosen("hf.co/a/b/m-7B.BF16.gguf"), "m-7B.BF16.gguf");
  EXPECT_NE(chosen("hf.co/a/b:Q6_K").find("there is no 'Q6_K'; the repository has:"), std::string::npos);
  EXPECT_NE(chosen("hf.co/a/b:Q4_K").find("UD-Q4_K_XL"), std::string::npos) << "no part of a name will do";
}

TEST(FileChoice, OfSeveralThatAreEquallyGoodIsLeftToTheUser) {
  auto c = choose({{"one.gguf", 1}, {"two.gguf", 2}}, parsed("hf.co/a/b"));
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().reason, std::string_view(reason::kAmbiguousModel));
  EXPECT_TRUE(choose({{"one.gguf", 1}}, parsed("hf.co/a/b")));
}

}  // namespace
}  // namespace gimbal::test
