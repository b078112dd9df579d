// Certificates that a program on x86-64 wrote hold on every variant of this build's CPU;
// scripts/test-aarch64.sh audits them on ARM. tests/data/README.md says how they were written.
#include <gtest/gtest.h>

#include "audit/audit.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

TEST(WrittenElsewhere, CertificatesHoldOnEveryVariant) {
  const std::string data = GIMBAL_SOURCE_DIR "/tests/data";
  const auto receipt = read_json(data + "/audit/stories260K-q8_0.json");
  const Variants variants = cpu_variants();
  for (auto& r : variants.refused) std::printf("not run: %s\n", r.c_str());
  ASSERT_GE(variants.usable.size(), 1u);
  ASSERT_EQ(receipt["certificates"].size(), 3u);
  for (const std::string& variant : variants.usable) {
    int rows = 0;
    for (const auto& text : receipt["certificates"]) {
      auto c = read_certificate(text.dump());
      ASSERT_TRUE(c) << c.error().message;
      EXPECT_EQ(c->arithmetic, kArithmetic) << "write them again: tests/data/README.md";
      const AuditJob job{&*c};
      EngineOptions o;
      o.device = "threads=1\nvariant=" + variant;
      ASSERT_TRUE(set_audit_options({&job, 1}, o.run));
      auto e = open_engine(data + "/stories/stories260K-q8_0.gguf", o);
      ASSERT_TRUE(e) << e.error().message;
      const auto tokenizer = *Tokenizer::create(e->file->metadata());
      const auto same = audit({&job, 1}, *e->model, *tokenizer);
      ASSERT_TRUE(same[0]) << same[0].error().message;
      EXPECT_EQ(same[0]->verdict, AuditResult::Verdict::Same)
          << variant << ": " << name_of(same[0]->subject) << " at " << same[0]->position;
      rows += same[0]->rows;
      c->answer.tokens[7] = c->answer.tokens[7] == 300 ? 301 : 300;
      const auto forged = audit({&job, 1}, *e->model, *tokenizer);
      ASSERT_TRUE(forged[0]) << forged[0].error().message;
      EXPECT_EQ(forged[0]->subject, AuditResult::Subject::Token);
      EXPECT_EQ(forged[0]->position, 7);
    }
    std::printf("%-12s %d rows of certificates\n", variant.c_str(), rows);
  }
}

}  // namespace
}  // namespace gimbal::test
