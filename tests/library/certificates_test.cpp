// Certificates of the public library: from a sequence, a conversation and a batch; read, written, signed and
// audited.
#include <gimbal/engine.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "support/golden.h"

namespace {

using namespace gimbal;

Engine engine_with(int threads) {
  Options o;
  o.backend = "cpu", o.threads = threads, o.verify = Verify::Never;
  return Engine(std::move(o));
}

Model load(int sequences, const std::string& draft = "") {
  ModelOptions m;
  m.context = 256, m.sequences = sequences, m.draft = draft;
  auto loaded = engine_with(1).load("default", m);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return *loaded;
}

TextOptions options(uint64_t seed) {
  TextOptions o;
  o.seed = seed, o.max_tokens = 30, o.certificate = true;
  return o;
}

Certificate forged(const Certificate& c) {
  std::string text = c.text();
  const size_t chain = text.find("\"chain\":\"") + 9;
  text[chain] = text[chain] == '0' ? '1' : '0';
  return *Certificate::parse(text);
}

TEST(LibraryCertificates, OfASequenceAndAConversation) {
  Model model = load(1, "ngram");
  auto sequence = model.new_sequence();
  ASSERT_TRUE(sequence);
  auto text = sequence->generate("Once upon a time", options(3));
  ASSERT_TRUE(text) << text.error().message;
  ASSERT_TRUE(text->certificate);
  EXPECT_EQ(text->certificate->answer(), text->tokens);
  EXPECT_EQ(text->certificate->model(), "stories260K");
  EXPECT_EQ(text->certificate->model_sha256().size(), 64u);
  auto follows = sequence->generate(" and", options(3));
  ASSERT_FALSE(follows) << "the beginning would be missing";
  EXPECT_EQ(follows.error().field, "certificate");
  ChatOptions chat;
  static_cast<TextOptions&>(chat) = options(4);
  const std::vector<Message> messages{{"user", "Tell me of a dog"}};
  auto reply = sequence->chat(messages, chat);
  ASSERT_TRUE(reply) << reply.error().message;
  ASSERT_TRUE(reply->generated.certificate);
  Engine auditor = engine_with(2);
  for (const Certificate& c : {*text->certificate, *reply->generated.certificate}) {
    auto audit = auditor.audit(c);
    ASSERT_TRUE(audit) << audit.error().message;
    EXPECT_EQ(audit->verdict, Audit::Same) << audit->subject << ": " << audit->explanation;
    EXPECT_EQ(audit->rows, 30);
    auto wrong = auditor.audit(forged(c));
    ASSERT_TRUE(wrong) << wrong.error().message;
    EXPECT_EQ(wrong->verdict, Audit::Differs);
    EXPECT_EQ(wrong->subject, "chain");
  }
  AuditOptions few;
  few.sample = 4;
  EXPECT_EQ(auditor.audit(*text->certificate, few)->rows, 4);
  EXPECT_FALSE(sequence->generate("Once", TextOptions())->certificate);
}

TEST(LibraryCertificates, OfABatchAuditedTogether) {
  Model model = load(3);
  std::vector<Certificate> all;
  {
    auto batch = model.new_batch();
    ASSERT_TRUE(batch) << batch.error().message;
    std::vector<uint64_t> ids;
    for (int i = 0; i < 9; i++) {
      TextOptions o = options(uint64_t(i));
      if (i % 3 == 1) o.grammar = "root ::= \" \" [a-z ]+ \".\"";
      // One text is ended by its sink: the certificate has its tokens up to there, and perhaps more.
      int told = 0;
      ids.push_back(
          *batch->submit("The dog", o, [i, told](std::string_view) mutable { return i != 4 || ++told < 5; }));
    }
    for (uint64_t id : ids) {
      auto text = batch->wait(id);
      ASSERT_TRUE(text) << text.error().message;
      ASSERT_TRUE(text->certificate);
      all.push_back(*text->certificate);
    }
  }
  auto audits = engine_with(1).audit(all);
  ASSERT_TRUE(audits) << audits.error().message;
  ASSERT_EQ(audits->size(), all.size());
  for (const Audit& a : *audits) EXPECT_EQ(a.verdict, Audit::Same) << a.subject << ": " << a.explanation;
  all[3] = forged(all[3]);
  audits = engine_with(1).audit(all);
  for (size_t i = 0; i < all.size(); i++)
    EXPECT_EQ((*audits)[i].verdict, i == 3 ? Audit::Differs : Audit::Same) << i;
}

// Each is audited under the settings that it names: other caches give other bits.
TEST(LibraryCertificates, OfOtherSettingsAuditedTogether) {
  std::vector<Certificate> all;
  for (const char* cache : {"f32", "bf16", "f32"}) {
    ModelOptions m;
    m.context = 256, m.cache_type = cache;
    auto loaded = engine_with(1).load("default", m);
    ASSERT_TRUE(loaded) << loaded.error().message;
    auto text = loaded->new_sequence()->generate("Once upon a time", options(3));
    ASSERT_TRUE(text) << text.error().message;
    ASSERT_TRUE(text->certificate);
    all.push_back(*text->certificate);
  }
  auto audits = engine_with(1).audit(all);
  ASSERT_TRUE(audits) << audits.error().message;
  ASSERT_EQ(audits->size(), all.size());
  for (const Audit& a : *audits) EXPECT_EQ(a.verdict, Audit::Same) << a.subject << ": " << a.explanation;
}

// A cache that is rotated has other bits than one that is not, and a certificate says which it was.
TEST(LibraryCertificates, OfRotatedCachesAreAuditedWithTheRotation) {
  const std::string path = gimbal::test::golden_dir() + "/quant/q-f16.gguf";
  std::string first;
  for (const char* rotation : {"on", "off"}) {
    ModelOptions m;
    m.context = 64, m.cache_type = "q4_1", m.cache_rotation = rotation;
    auto loaded = engine_with(1).load(path, m);
    ASSERT_TRUE(loaded) << loaded.error().message;
    auto text = loaded->new_sequence()->generate("Once upon a time", options(3));
    ASSERT_TRUE(text && text->certificate);
    std::string certificate = text->certificate->text();
    const bool rotated = certificate.find("\"q4_1, rotated\"") != certificate.npos;
    EXPECT_EQ(rotated, rotation == std::string("on")) << certificate;
    AuditOptions of_file;
    of_file.model = path;
    EXPECT_EQ(engine_with(1).audit(*text->certificate, of_file)->verdict, Audit::Same);
    if (!rotated) continue;
    const std::string name = "q4_1, rotated";
    certificate.replace(certificate.find(name), name.size(), "q4_1");
    EXPECT_EQ(engine_with(1).audit(*Certificate::parse(certificate), of_file)->verdict, Audit::Differs);
  }
}

TEST(LibraryCertificates, FilesPrivatePromptsAndSignatures) {
  Model model = load(1);
  const Certificate c = *model.new_sequence()->generate("The dog", options(1))->certificate;
  const std::string path = gimbal::test::temporary_path("answer.json");
  ASSERT_TRUE(c.write(path));
  auto read = Certificate::read(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->text(), c.text());
  EXPECT_FALSE(Certificate::read(path + ".none"));
  EXPECT_EQ(Certificate::parse("{}").error().code, Code::Malformed);

  Engine auditor = engine_with(1);
  const Certificate closed = c.without_prompt();
  EXPECT_TRUE(closed.prompt().empty());
  EXPECT_EQ(auditor.audit(closed).error().code, Code::Usage);
  AuditOptions with_prompt;
  with_prompt.prompt = c.prompt();
  EXPECT_EQ(auditor.audit(closed, with_prompt)->verdict, Audit::Same);

  AuditOptions by;
  by.signer = std::string(64, '0');
  EXPECT_EQ(auditor.audit(c, by)->subject, "signature") << "it has none";
  EXPECT_FALSE(*c.verify());
  EXPECT_EQ(c.signer(), "");
  // RFC 8032, section 7.1, test 1.
  const std::string key = gimbal::test::temporary_path("key.pem");
  std::FILE* file = std::fopen(key.c_str(), "w");
  std::fputs(
      "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
      "-----END PRIVATE KEY-----\n",
      file);
  std::fclose(file);
  auto is_signed = c.sign(key);
  if (!is_signed) {
    ASSERT_EQ(is_signed.error().code, Code::Unsupported) << is_signed.error().message;
    GTEST_SKIP() << "OpenSSL 3 is not installed: scripts/setup.sh checks";
  }
  EXPECT_EQ(is_signed->signer(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_TRUE(*is_signed->verify());
  EXPECT_EQ(is_signed->without_prompt().signer(), "") << "the signature was of the whole";
  EXPECT_EQ(auditor.audit(is_signed->without_prompt(), with_prompt)->verdict, Audit::Same);
  EXPECT_FALSE(*forged(*is_signed).verify());
  const auto changed = auditor.audit(forged(*is_signed));
  EXPECT_EQ(changed->subject, "signature");
  EXPECT_NE(changed->explanation.find("changed after signing"), std::string::npos) << changed->explanation;
  const auto of_another = auditor.audit(*is_signed, by);
  EXPECT_EQ(of_another->subject, "signature");
  EXPECT_NE(of_another->explanation.find("another key"), std::string::npos) << of_another->explanation;
  by.signer = is_signed->signer();
  EXPECT_EQ(auditor.audit(*is_signed, by)->verdict, Audit::Same);
  EXPECT_FALSE(c.sign(path)) << "no key";
}

TEST(LibraryCertificates, AnotherModel) {
  Model model = load(1);
  const Certificate c = *model.new_sequence()->generate("The dog", options(1))->certificate;
  AuditOptions o;
  o.model = gimbal::test::golden_dir() + "/stories/stories260K-q8_0.gguf";
  auto other = engine_with(1).audit(c, o);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->subject, "model");
  o.model = "/there/is/none.gguf";
  EXPECT_EQ(engine_with(1).audit(c, o).error().code, Code::NotFound);
}

}  // namespace
