// Certificates: an answer's certificate holds on other threads, batches, instruction sets and with drafts;
// every forgery is found, with its kind and its place.
#include "audit/audit.h"

#include <functional>
#include <unordered_set>

#include "audit/certificate.h"
#include "audit/machine.h"
#include "runtime/scripted_drafter.h"

namespace gimbal::test {
namespace {

using Subject = AuditResult::Subject;
using Verdict = AuditResult::Verdict;

TEST(Audit, TheSameAnswerOnOtherMachinesIsTheSame) {
  Machine writer;
  std::vector<std::unique_ptr<Machine>> auditors;
  auditors.push_back(std::make_unique<Machine>("stories260K-q8_0.gguf", "threads=2", 7));
  for (const std::string& variant : cpu_variants().usable)
    auditors.push_back(
        std::make_unique<Machine>("stories260K-q8_0.gguf", "threads=1\nvariant=" + variant, 128));
  std::unordered_set<std::string> ends;
  for (const Answer& a : answers()) {
    const Certificate c = writer.write(a.settings, a.grammar);
    ends.insert(c.answer.finish);
    for (const auto& m : auditors) {
      const AuditResult r = m->check(c);
      EXPECT_EQ(r.verdict, Verdict::Same)
          << a.what << ": " << name_of(r.subject) << " at " << r.position << ": " << r.explanation;
      EXPECT_EQ(size_t(r.rows), c.rows()) << a.what;
      EXPECT_EQ(m->check(c, {.sample = 5, .seed = 3}).verdict, Verdict::Same) << a.what;
      EXPECT_EQ(m->check(c, {.sample = 5, .seed = 3}).rows, std::min(5, int(c.rows()))) << a.what;
    }
    // The same text by another way: drafts, of which some are wrong.
    std::vector<Token> text = c.prompt.tokens;
    text.insert(text.end(), c.answer.tokens.begin(), c.answer.tokens.end());
    Drafting drafting(std::make_unique<ScriptedDrafter>(text, 0.7, 512), Drafting::Length::Most);
    const Certificate drafted = writer.write(a.settings, a.grammar, &drafting);
    EXPECT_EQ(canonical_text(drafted), canonical_text(c)) << a.what;
  }
  EXPECT_EQ(ends.count("length") + ends.count("stop-string") + ends.count("stop-token"), 3u)
      << "kinds of ends";
}

TEST(Audit, ForgeriesAreFound) {
  Machine machine, rounded("stories260K-q8_0.gguf", "threads=1", 128, DType::BF16),
      other("stories260K-q4_0.gguf");
  const Certificate c = machine.write(sampled(2));
  ASSERT_EQ(c.answer.tokens.size(), 80u);
  const auto found = [&](Machine& m, const char* what, const std::function<void(Certificate&)>& forge,
                         Subject subject, int position) {
    Certificate forged = c;
    forge(forged);
    forged.prompt.sha256 = prompt_digest(forged.prompt.tokens);
    const AuditResult r = m.check(forged);
    EXPECT_EQ(r.verdict, Verdict::Differs) << what;
    EXPECT_STREQ(name_of(r.subject), name_of(subject)) << what << ": " << r.explanation;
    if (position >= -1) { EXPECT_EQ(r.position, position) << what; }
    EXPECT_FALSE(r.explanation.empty()) << what;
  };
  const auto other_token = [](Token t) { return t == 300 ? 301 : 300; };
  found(
      machine, "a token", [&](auto& f) { f.answer.tokens[40] = other_token(f.answer.tokens[40]); },
      Subject::Token, 40);
  found(
      machine, "two tokens exchanged",
      [&](auto& f) { f.answer.tokens[50] = other_token(f.answer.tokens[50]), f.answer.tokens[51] = 7; },
      Subject::Token, 50);
  found(
      machine, "a token and its row",
      [&](auto& f) {
        f.answer.tokens[40] = other_token(f.answer.tokens[40]);
        f.logits.rows[8 * 40] ^= 1;
      },
      Subject::Logits, 40);
  found(
      machine, "the prompt", [](auto& f) { f.prompt.tokens[3] = 300; }, Subject::Logits, 0);
  found(
      machine, "a longer prompt", [](auto& f) { f.prompt.tokens.push_back(300); }, Subject::Logits, 0);
  found(
      machine, "the temperature", [](auto& f) { f.text.sampler.temperature = 3; }, Subject::Token, -2);
  found(
      machine, "the seed", [](auto& f) { f.text.sampler.seed++; }, Subject::Token, -2);
  found(
      machine, "greedy", [](auto& f) { f.text.sampler.greedy = true; }, Subject::Token, -2);
  found(
      machine, "a penalty", [](auto& f) { f.text.sampler.repeat_penalty = 2; }, Subject::Token, -2);
  found(
      machine, "a row",
      [](auto& f) { f.logits.rows[8 * 33 + 2] = f.logits.rows[8 * 33 + 2] == '0' ? '1' : '0'; },
      Subject::Logits, 33);
  found(
      machine, "the chain", [](auto& f) { f.logits.chain[5] = f.logits.chain[5] == '0' ? '1' : '0'; },
      Subject::Chain, -1);
  found(
      machine, "cut off", [](auto& f) { f.answer.tokens.resize(20), f.logits.rows.resize(160); },
      Subject::Chain, -1);
  found(
      machine, "cut off, as if it had ended",
      [](auto& f) {
        f.answer.tokens.resize(20), f.logits.rows.resize(8 * 21), f.answer.finish = "stop-token";
      },
      Subject::End, 20);
  found(
      machine, "continued", [](auto& f) { f.answer.tokens.push_back(300), f.logits.rows += "00000000"; },
      Subject::End, 80);
  found(
      machine, "a stop string", [](auto& f) { f.text.stops = {" "}; }, Subject::End, -2);
  found(
      machine, "a grammar", [](auto& f) { f.grammar = "root ::= [0-9]+"; }, Subject::Token, 0);
  found(
      rounded, "another cache", [](auto&) {}, Subject::Logits, -2);
  found(
      other, "another quantization", [](auto&) {}, Subject::Logits, 0);

  // A sample finds what lies at its places.
  Certificate forged = c;
  forged.answer.tokens[79] = other_token(forged.answer.tokens[79]);
  EXPECT_EQ(machine.check(forged, {.sample = 80, .seed = 1}).position, 79);
}

// Answers of different lengths share steps, in a model with memory for fewer than there are; one of them is
// forged, and one is no answer of this model at all.
TEST(Audit, ManyAtOnceAreAsEachAlone) {
  Machine machine;
  std::vector<Certificate> all;
  for (const Answer& a : answers()) all.push_back(machine.write(a.settings, a.grammar));
  all[2].answer.tokens[10] = all[2].answer.tokens[10] == 300 ? 301 : 300;
  all[5].answer.tokens[0] = 100'000;
  std::vector<AuditJob> jobs;
  for (const Certificate& c : all) jobs.push_back({&c});
  for (const bool tight : {false, true}) {
    EngineOptions o;
    o.device = "threads=2";
    ASSERT_TRUE(set_audit_options(jobs, o.run));
    EXPECT_EQ(o.run.sequences, 8);
    if (tight) o.run.cache_positions = 64 * 12;  // pages for one long answer, and some short ones
    auto e = open_engine(golden_dir() + "/stories/stories260K-q8_0.gguf", o);
    ASSERT_TRUE(e) << e.error().message;
    size_t last = 0, total = 0;
    const AuditOptions how{.progress = [&](size_t done, size_t of) {
      EXPECT_LE(done, of);
      last = done, total = of;
    }};
    const auto results = audit(jobs, *e->model, *machine.tokenizer, how);
    ASSERT_EQ(results.size(), jobs.size());
    EXPECT_EQ(last, total);
    for (size_t i = 0; i < jobs.size(); i++) {
      if (i == 5) {
        EXPECT_FALSE(results[i]);
        continue;
      }
      ASSERT_TRUE(results[i]) << results[i].error().message;
      EXPECT_EQ(results[i]->verdict, i == 2 ? Verdict::Differs : Verdict::Same) << i;
      EXPECT_EQ(size_t(results[i]->rows), i == 2 ? 10 : all[i].rows()) << i;
    }
    EXPECT_EQ(results[2]->position, 10);
  }
}

// Such a sampler depends on all choices before, so all positions before a drawn one are checked.
TEST(Audit, DrawnPositionsOfASamplerThatRemembers) {
  Machine machine;
  for (const bool mirostat : {true, false}) {
    GenerateSettings s = sampled(5);
    if (mirostat) s.sampler.mirostat = 2;
    else s.sampler.adaptive_target = 0.3f;
    Certificate c = machine.write(s);
    const AuditResult r = machine.check(c, {.sample = 2, .seed = 3});
    EXPECT_EQ(r.verdict, Verdict::Same) << r.explanation;
    EXPECT_GT(r.rows, 2);
    EXPECT_LE(size_t(r.rows), c.rows());
    const AuditResult all = machine.check(c, {.sample = int(c.rows()), .seed = 3});
    EXPECT_EQ(all.verdict, Verdict::Same) << all.explanation;
    EXPECT_EQ(size_t(all.rows), c.rows()) << "no row behind the last one";
    c.answer.tokens[0] = c.answer.tokens[0] == 300 ? 301 : 300;
    EXPECT_EQ(machine.check(c, {.sample = 2, .seed = 3}).position, 0);
  }
}

TEST(Audit, AnAnswerWithoutTokens) {
  Machine machine;
  Certificate c = machine.write(sampled(2, 0));
  EXPECT_EQ(c.rows(), 0u);
  auto read = read_certificate(to_text(c));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(machine.check(*read).verdict, Verdict::Same);
  c.logits.chain[0] = c.logits.chain[0] == '0' ? '1' : '0';
  EXPECT_EQ(machine.check(c).subject, Subject::Chain);
}

TEST(Audit, TheIdentityIsComparedFirst) {
  const Certificate::Model model{"m", std::string(64, 'a'), 10, {{std::string(64, 'b'), 1}}};
  Certificate c;
  c.model = model;
  EXPECT_FALSE(audit_identity(c, model));
  auto changed = model;
  changed.name = "n";
  EXPECT_FALSE(audit_identity(c, changed)) << "a name is for people";
  changed.sha256[3] = 'c';
  EXPECT_EQ(audit_identity(c, changed)->subject, Subject::Model);
  changed = model, changed.adapters[0].scale = 2;
  EXPECT_EQ(audit_identity(c, changed)->subject, Subject::Adapters);
  changed = model, changed.adapters.clear();
  EXPECT_EQ(audit_identity(c, changed)->verdict, Verdict::Differs);
  c.arithmetic++;
  EXPECT_EQ(audit_identity(c, model)->verdict, Verdict::CannotTell);
  c.arithmetic--, c.settings.fast_kernels = true;
  EXPECT_EQ(audit_identity(c, model)->subject, Subject::FastKernels);
}

TEST(Audit, APrivatePromptIsBroughtByTheAuditor) {
  Machine machine;
  Certificate c = machine.write(sampled(2, 8));
  const auto prompt = std::exchange(c.prompt.tokens, {});
  const AuditJob job{&c};
  EXPECT_FALSE(audit({&job, 1}, *machine.engine.model, *machine.tokenizer)[0]);
  EXPECT_EQ(machine.check(c, {}, prompt).verdict, Verdict::Same);
  EXPECT_EQ(machine.check(c, {}, {1, 300}).subject, Subject::Prompt);
}

TEST(Certificate, ItsTextIsReadAsItWasWritten) {
  Machine machine;
  Certificate c = machine.write(sampled(2, 8));
  c.model.adapters = {{std::string(64, 'd'), 0.1f}};
  c.text.stops = {"\n", "\u00e9\""}, c.text.sampler.logit_bias = {{5, -INFINITY}, {7, 0.25f}};
  c.made = {"gimbal test", {"cpu:0"}, "", "2026-11-25T16:00:00Z", 0.25, 0.5};
  const std::string text = to_text(c);
  auto again = read_certificate(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_text(*again), text);
  for (size_t n = 0; n < text.size() - 1; n++) {
    auto cut = read_certificate(std::string_view(text).substr(0, n));
    ASSERT_FALSE(cut) << n;
    EXPECT_EQ(cut.error().code, Code::Malformed) << n;
  }
  // What contradicts itself is refused before a model is loaded.
  const auto refused = [&](const char* what, const std::function<void(Certificate&)>& change) {
    Certificate wrong = c;
    change(wrong);
    EXPECT_FALSE(read_certificate(to_text(wrong))) << what;
  };
  refused("a token without a row", [](auto& w) { w.answer.tokens.push_back(1); });
  refused("a prompt of another digest", [](auto& w) { w.prompt.tokens[0]++; });
  refused("a digest in capitals", [](auto& w) { w.model.sha256 = std::string(64, 'A'); });
  refused("a private prompt's digest in capitals", [](auto& w) {
    w.prompt.tokens.clear();
    w.prompt.sha256 = std::string(64, 'A');
  });
  refused("a short chain", [](auto& w) { w.logits.chain.pop_back(); });
  refused("a chain in other letters", [](auto& w) { w.logits.chain[0] = 'g'; });
  refused("rows in capitals", [](auto& w) { w.logits.rows[0] = 'A'; });
  refused("a row too many", [](auto& w) { w.logits.rows += "00000000"; });
  refused("another format", [](auto& w) { w.version = 2; });
  for (const int version : {0, Certificate::kVersion + 1}) {
    Certificate other = c;
    other.version = version;
    EXPECT_EQ(read_certificate(to_text(other)).error().code, Code::Unsupported) << version;
  }
}

TEST(Certificate, SignaturesFitTheirContentAlone) {
  // RFC 8032, section 7.1, test 1, as a PEM file: the private key 9d61...
  const std::string path = temporary_path("key.pem");
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(
      "-----BEGIN PRIVATE "
      "KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE "
      "KEY-----\n",
      file);
  std::fclose(file);
  Certificate c;
  c.model.name = "m", c.answer.finish = "length";
  if (auto ok = sign(c, path); !ok) {
    ASSERT_EQ(ok.error().code, Code::Unsupported) << ok.error().message;
    GTEST_SKIP() << "OpenSSL 3 is not installed: scripts/setup.sh checks";
  }
  EXPECT_EQ(c.signature.key, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
      << "the public key of the RFC";
  EXPECT_TRUE(*signature_fits(c));
  const std::string text = to_text(c);
  auto changed = c;
  changed.model.name = "n";
  EXPECT_FALSE(*signature_fits(changed));
  changed = c, changed.signature.value[0] = changed.signature.value[0] == '0' ? '1' : '0';
  EXPECT_FALSE(*signature_fits(changed));
  changed = c, changed.signature.key = "short";
  EXPECT_FALSE(*signature_fits(changed));
  EXPECT_FALSE(sign(c, "/there/is/no/key.pem"));
  EXPECT_FALSE(sign(c, golden_dir() + "/tolerances.json"));
}

}  // namespace
}  // namespace gimbal::test
