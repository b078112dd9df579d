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

// Hugging Face's rules for names: letters, digits, '-', '_' and '.', up to 96 of them.
TEST(Address, NamesAndTheirBounds) {
  unsetenv("HF_ENDPOINT");
  EXPECT_EQ(parsed("hf.co/azAZ09/a-Z_9.z").repository, "azAZ09/a-Z_9.z");
  EXPECT_EQ(parsed("hf.co/a/b:azAZ09-_.").quant, "azAZ09-_.");
  const std::string longest(96, 'n');
  EXPECT_EQ(parsed(("hf.co/" + longest + "/" + longest).c_str()).repository, longest + "/" + longest);
  for (const std::string& name : {longest + "n", std::string("-a"), std::string(".a"), std::string("a..b"),
                                  // what stands beside the letters and digits in ASCII
                                  std::string("a`"), std::string("a{"), std::string("a@"), std::string("a["),
                                  std::string("a;"), std::string("a b"), std::string("a\xc3\xa9")})
    for (const std::string& text : {"hf.co/" + name + "/b", "hf.co/a/" + name, "hf.co/a/b:" + name,
                                    "hf.co/a/b/blob/" + name + "/c.gguf"})
      EXPECT_FALSE(parse_address(text)) << text;
  for (const char* text : {"hf.co", "x/hf.co/a/b", "model.gguf", "huggingface.co", "a:/b", ""})
    EXPECT_FALSE(is_address(text)) << text;
}

TEST(Address, PathsAreDecodedOnce) {
  unsetenv("HF_ENDPOINT");
  const std::pair<const char*, const char*> kFiles[] = {
      {"hf.co/a/b/%30%39%4A%4f%61.gguf", "09JOa.gguf"},
      {"hf.co/a/b/c.ggu%66", "c.gguf"},
      {"hf.co/a/b/%2525.gguf", "%25.gguf"},
      {"hf.co/a/b/%4g%g4%/%.gguf", "%4g%g4%/%.gguf"},
      {"hf.co/a/b/%3:%3@%3`.gguf", "%3:%3@%3`.gguf"},
      {"hf.co/a/b/c%20d.gguf", "c d.gguf"},
      {"hf.co/a/b/c.GGUF#top", "c.GGUF"},
      {"hf.co/a/b/resolve/v1.0/d/e.gguf", "d/e.gguf"},
      {"hf.co/a/b/resolve/main/blob/x/e.gguf", "blob/x/e.gguf"},
      {"hf.co/a/b/blob/main/resolve/x/e.gguf", "resolve/x/e.gguf"},
  };
  for (const auto& [text, file] : kFiles) {
    const ModelAddress a = parsed(text);
    EXPECT_EQ(a.repository, "a/b") << text;
    EXPECT_EQ(a.file, file) << text;
    EXPECT_EQ(a.revision, a.file == "d/e.gguf" ? "v1.0" : "main") << text;
    EXPECT_EQ(a.name(), std::string("hf.co/a/b/") + file);
  }
  EXPECT_EQ(parsed("hf.co/a/b:Q8_0").name(), "hf.co/a/b:Q8_0");
  for (const char* text :
       {"hf.co/a/b/.gguf", "hf.co/a/b/c/.gguf", "hf.co/a/b//c.gguf", "hf.co/a/b/./c.gguf",
        "hf.co/a/b/c%1f.gguf", "hf.co/a/b/c%7F.gguf", "hf.co/a/b/resolve/main", "hf.co/a/b/resolve/x.gguf",
        "hf.co/a/b/blob/main/", "hf.co/a/b/c.gguf%6", "https://a/x%00.gguf", "https://a/.gguf"})
    EXPECT_FALSE(parse_address(text)) << text;
  EXPECT_EQ(url_path("azAZ09-._~/"), "azAZ09-._~/");
  EXPECT_EQ(url_path("a%:?#@+&=\\\n"), "a%25%3A%3F%23%40%2B%26%3D%5C%0A");
}

// RFC 3986: scheme and host are the same in small and capital letters, path and query are not.
TEST(Address, PartsOfAUrl) {
  const auto parts = [](const char* text) {
    const auto u = Url::parse(text);
    return u ? u->scheme + " " + u->credentials + " " + u->host + " " + u->path + " " + u->query : "none";
  };
  EXPECT_EQ(parts("HTTPS://AZ.example/AZ?AZ"), "https  az.example /AZ ?AZ");
  EXPECT_EQ(parts("http://h"), "http  h / ");
  EXPECT_EQ(parts("http://h?q=/x"), "http  h / ?q=/x");
  EXPECT_EQ(parts("http://h#f?q"), "http  h / ");
  EXPECT_EQ(parts("http://h/p?a?b#c#d"), "http  h /p ?a?b");
  EXPECT_EQ(parts("http://u:p@q@h:1/"), "http u:p@q h:1 / ");
  EXPECT_EQ(parts("http://h/a@b"), "http  h /a@b ");
  EXPECT_EQ(parts("http://[::1]:9/x_y"), "http  [::1]:9 /x_y ");
  EXPECT_EQ(parts("http://a_b/!"), "http  a_b /! ");
  for (const char* text : {"http:/h/", "ftp://h/", "://h/", "http://", "http:///p", "http://u@/p",
                           "http://h/a b", "http://h/\x7f", "http://h/\t", "http://h\\x/"})
    EXPECT_EQ(parts(text), "none") << text;
  EXPECT_EQ(Url::parse("http://u:p@h/x?y")->whole(), "http://u:p@h/x?y");
  EXPECT_EQ(Url::parse("http://h/x?y")->whole(), "http://h/x?y");
  EXPECT_EQ(Url::parse("http://u:p@h/x?y")->shown(), "http://h/x");
  // A name that begins like an address is not this machine; a token must not go to it unencrypted.
  for (const char* text : {"http://127.0.0.1.example/", "http://127.example:80/", "http://[::2]/",
                           "http://128.0.0.1/", "http://12.7.0.1/", "http://[::1/", "http://xlocalhost/"})
    EXPECT_FALSE(Url::parse(text)->is_loopback()) << text;
  for (const char* text : {"http://127.1/", "http://127.255.0.9:8/", "http://LOCALHOST:80"})
    EXPECT_TRUE(Url::parse(text)->is_loopback()) << text;
}

TEST(Address, OfAMirror) {
  setenv("HF_ENDPOINT", "http://models.example//", 1);
  EXPECT_EQ(hub_endpoint(), "http://models.example");
  EXPECT_EQ(parsed("http://models.example/a/b:Q8_0").quant, "Q8_0");
  EXPECT_EQ(parsed("hf.co/a/b").repository, "a/b");
  EXPECT_EQ(parsed("http://models.example.org/a/b.gguf").repository, "") << "another site";
  for (const char* none : {"", "/"}) {
    setenv("HF_ENDPOINT", none, 1);
    EXPECT_EQ(hub_endpoint(), "https://huggingface.co");
  }
  unsetenv("HF_ENDPOINT");
  EXPECT_EQ(hub_endpoint(), "https://huggingface.co");
}

// Messages name the part that is wrong and the forms that are right, and no secrets.
TEST(Address, WhatIsSaidOfOthers) {
  unsetenv("HF_ENDPOINT");
  const std::pair<const char*, const char*> kWrong[] = {
      {"hf.co/a", "'hf.co/a' is not a model address: the owner or the repository is missing"},
      {"hf.co/-a/b", "'-a/b' is not a repository name"},
      {"hf.co/a/b:", "'' is not a quantization"},
      {"hf.co/a/b/blob/-x/c.gguf", "'-x' is not a revision"},
      {"hf.co/a/b/c.bin", "'c.bin' is not a .gguf file"},
      {"model", "it does not begin with http:// or https://"},
      {"ftp://u:secret@h/m.gguf", "'ftp://...' is not a model address: only http and https are supported"},
      {"https://u:secret@h/m .gguf", "the host is missing, or a character is not allowed in URLs"},
      {"https://u:secret@h/m.bin?sig=secret",
       "'https://h/m.bin' is not a model address: it does not name a .gguf"},
  };
  for (const auto& [text, why] : kWrong) {
    const auto a = parse_address(text);
    ASSERT_FALSE(a) << text;
    const Error& e = a.error();
    EXPECT_NE(e.message.find(why), std::string::npos) << e.message;
    EXPECT_EQ((e.message + e.remedy + e.value).find("secret"), std::string::npos) << e.message;
    EXPECT_NE(e.remedy.find("hf.co/OWNER/REPO:QUANT"), std::string::npos) << e.remedy;
    EXPECT_STREQ(e.field, "model");
  }
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

TEST(FileChoice, AQuantizationIsAWordOfTheName) {
  const std::pair<const char*, const char*> kNames[] = {
      {"q4_0.gguf", "Q4_0"},
      {"Qwen3-8B-Q4_0.GGUF", "Q4_0"},
      {"m-TQ1_0.gguf", "TQ1_0"},
      {"m_IQ4_NL.gguf", "IQ4_NL"},
      {"m-MXFP4_MOE.gguf", "MXFP4_MOE"},
      {"m-NVFP4.gguf", "NVFP4"},
      {"m-i2_s.gguf", "I2_S"},
      {"m.fp32.gguf", "F32"},
      {"m-Q8_0-Q9_K.gguf", "Q9_K"},
      {"m-UD-Q2_K_XL.gguf", "UD-Q2_K_XL"},
      {"m-AUD-Q2_K.gguf", "UD-Q2_K"},
      {"Q8_0/m.gguf", ""},
      {"m-xQ4_0.gguf", ""},
      {"m-Q4.gguf", ""},
      {"m-Q4K_M.gguf", ""},
      {"m-QK_M.gguf", ""},
      {"m-Q4_.gguf", ""},
      {"m-Q:_K.gguf", ""},
      {"m-Q+_K.gguf", ""},
      {"m-Q.gguf", ""},
      {"x.gguf", ""},
  };
  for (const auto& [name, quant] : kNames) {
    const auto all = choices({{"a.txt", 1}, {name, 2}});
    ASSERT_EQ(all.size(), 1u) << name;
    EXPECT_EQ(all[0].quant, quant) << name;
    EXPECT_EQ(all[0].files, std::vector<size_t>{1}) << name;
  }
  for (const char* name : {".gguf", "gguf", "m.ggufx", "m-gguf", "a/imatrix-m.gguf", "a/M-MMPROJ.gguf"})
    EXPECT_TRUE(choices({{name, 1}}).empty()) << name;
}

TEST(FileChoice, PartsComeInTheirOrderOrNotAtAll) {
  const std::vector<RemoteName> files = {{"m-Q8_0-00003-of-00003.gguf", 3},
                                         {"m-Q8_0-00001-of-00003.gguf", 1},
                                         {"m-Q8_0-00002-of-00003.gguf", 2}};
  const auto all = choices(files);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].files, (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(all[0].bytes, 6u);
  EXPECT_EQ(all[0].path, files[1].path);
  for (size_t missing = 0; missing < files.size(); missing++) {
    auto others = files;
    others.erase(others.begin() + ptrdiff_t(missing));
    EXPECT_TRUE(choices(others).empty()) << missing;
  }
}

// A repository without GGUF files, as transformers writes it.
TEST(FileChoice, OfAFolderIsAllThatTransformersReads) {
  std::vector<RemoteName> files = {{"model.safetensors", 100}, {"tokenizer.json", 20},
                                   {"README.md", 7},           {"chat_template.jinja", 4},
                                   {"config.json", 10},        {"generation_config.json", 1}};
  const auto choose_of = [&](const char* address) { return choose(files, parsed(address)); };
  auto c = choose_of("hf.co/a/b");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->path, "config.json");
  EXPECT_EQ(c->files, (std::vector<size_t>{4, 1, 5, 3, 0})) << "texts first";
  EXPECT_EQ(c->bytes, 135u);
  EXPECT_FALSE(choose_of("hf.co/a/b:Q4_0")) << "a folder has no quantization";
  for (const char* needed : {"config.json", "tokenizer.json", "model.safetensors"}) {
    auto others = files;
    std::erase_if(others, [&](const RemoteName& f) { return f.path == needed; });
    auto none = choose(others, parsed("hf.co/a/b"));
    ASSERT_FALSE(none) << needed;
    EXPECT_EQ(none.error().code, Code::NotFound);
    EXPECT_NE(none.error().message.find("has no GGUF model, and no config.json with tokenizer.json"),
              std::string::npos);
  }
  files.push_back({"m.gguf", 50});
  EXPECT_EQ(choose_of("hf.co/a/b")->path, "m.gguf") << "a GGUF file goes first";
}

TEST(FileChoice, OfAFolderHasEveryShard) {
  const std::vector<RemoteName> files = {{"model-00002-of-00002.safetensors", 2},
                                         {"config.json", 10},
                                         {"tokenizer.json", 20},
                                         {"consolidated-00001-of-00001.safetensors", 99},
                                         {"model.safetensors.index.json", 5},
                                         {"model-00001-of-00001.weights.bin", 77},
                                         {"model-00001-of-00002.safetensors", 1}};
  const auto c = choose(files, parsed("hf.co/a/b"));
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->files, (std::vector<size_t>{1, 2, 4, 6, 0}));
  EXPECT_EQ(c->bytes, 38u);
  for (const size_t missing : {0, 4, 6}) {
    auto others = files;
    others.erase(others.begin() + ptrdiff_t(missing));
    EXPECT_FALSE(choose(others, parsed("hf.co/a/b"))) << files[missing].path;
  }
}

TEST(FileChoice, IsFoundByTheNameOrItsEndInAnyCase) {
  const std::vector<RemoteName> files = {{"x/fizz-a.gguf", 1}, {"x/fizz-az.gguf", 2}};
  const auto path = [&](const char* address) {
    auto c = choose(files, parsed(address));
    return c ? c->path : std::string(c.error().reason) + ": " + c.error().message;
  };
  EXPECT_EQ(path("hf.co/a/b:FIZZ-A"), "x/fizz-a.gguf");
  EXPECT_EQ(path("hf.co/a/b:fizz-az.gguf"), "x/fizz-az.gguf");
  EXPECT_EQ(path("hf.co/a/b:Az"), "x/fizz-az.gguf");
  EXPECT_NE(path("hf.co/a/b:z").find("there is no 'z'"), std::string::npos) << "a whole word";
  EXPECT_EQ(path("hf.co/a/b").find("ambiguous-model: hf.co/a/b has 2 matching models:"), 0u);
}

TEST(FileChoice, OfSeveralThatAreEquallyGoodIsLeftToTheUser) {
  auto c = choose({{"one.gguf", 1}, {"two.gguf", 2}}, parsed("hf.co/a/b"));
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().reason, std::string_view(reason::kAmbiguousModel));
  EXPECT_TRUE(choose({{"one.gguf", 1}}, parsed("hf.co/a/b")));
}

}  // namespace
}  // namespace gimbal::test
