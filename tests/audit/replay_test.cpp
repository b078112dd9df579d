// Replays: an audit writes the same text again, up to any token; a branch keeps the tokens before its place,
// and its certificate holds without the one that it is of.
#include <functional>

#include "audit/audit.h"
#include "audit/auditor.h"
#include "audit/branch.h"
#include "audit/machine.h"

namespace gimbal::test {
namespace {

using Subject = AuditResult::Subject;
using Verdict = AuditResult::Verdict;

struct Replayed {
  AuditResult result;
  std::string text;
};

Replayed replayed(Machine& m, const Certificate& c, std::optional<int> until = {}) {
  Replayed r;
  AuditOptions o;
  o.until = until, o.text = [&](std::string_view piece) { r.text += piece; };
  r.result = m.check(c, o);
  return r;
}

std::string text_of(Machine& m, std::vector<Token> tokens, const std::vector<Token>& behind) {
  const size_t before = m.tokenizer->decode(behind).size();
  tokens.insert(tokens.begin(), behind.begin(), behind.end());
  return m.tokenizer->decode(tokens).substr(before);
}

// Without the stop string that ended it.
std::string text_of(Machine& m, const Certificate& c) {
  std::string text = text_of(m, c.answer.tokens, c.prompt.tokens);
  if (c.answer.finish == "stop-string") text.resize(text.rfind(c.text.stops.at(0)));
  return text;
}

struct Written {
  Generated generated;
  Certificate certificate;
};

Written write(Machine& m, const Branch& b, const Certificate& origin) {
  std::optional<Constraint> constraint;
  if (!b.grammar.empty()) constraint = *Constraint::create(*Grammar::gbnf(b.grammar), m.tree);
  auto session = *Session::create(*m.engine.model);
  auto g = generate(*session, *m.tokenizer, b.prompt, b.settings(constraint ? &*constraint : nullptr),
                    [](std::string_view, Token) { return true; });
  EXPECT_TRUE(g) << g.error().message;
  Written w{std::move(*g), {}};
  w.certificate = certificate_of(b, origin, w.generated);
  return w;
}

std::vector<Token> first(const std::vector<Token>& all, size_t n) {
  return {all.begin(), all.begin() + ptrdiff_t(std::min(n, all.size()))};
}

// As a reader of the file has it.
Certificate read_again(const Certificate& c) {
  auto read = read_certificate(to_text(c));
  EXPECT_TRUE(read) << read.error().message;
  return read ? *read : Certificate();
}

TEST(Replay, TheTextIsWrittenAgain) {
  Machine writer, reader("stories260K-q8_0.gguf", "threads=2", 7);
  for (const Answer& a : answers()) {
    const Certificate c = writer.write(a.settings, a.grammar);
    const Replayed all = replayed(reader, c);
    EXPECT_EQ(all.result.verdict, Verdict::Same) << a.what;
    EXPECT_EQ(all.text, text_of(writer, c)) << a.what;
    for (const int n : {0, 1, 13, int(c.answer.tokens.size()) - 1}) {
      const Replayed part = replayed(reader, c, n);
      EXPECT_EQ(part.result.verdict, Verdict::Same) << a.what;
      EXPECT_EQ(part.result.rows, n) << a.what;
      EXPECT_EQ(part.text, text_of(writer, first(c.answer.tokens, size_t(n)), c.prompt.tokens)) << a.what;
    }
    EXPECT_EQ(size_t(replayed(reader, c, int(c.answer.tokens.size())).result.rows), c.rows())
        << "all tokens: the end is checked, too";
  }
}

TEST(Replay, ADamagedAnswerIsWrittenUpToItsFirstDifference) {
  Machine m, other("stories260K-q4_0.gguf");
  const Certificate c = m.write(sampled(2));
  Certificate damaged = c;
  damaged.answer.tokens[40] = damaged.answer.tokens[40] == 300 ? 301 : 300;
  const Replayed r = replayed(m, damaged);
  EXPECT_EQ(r.result.verdict, Verdict::Differs);
  EXPECT_EQ(r.result.subject, Subject::Token);
  EXPECT_EQ(r.result.position, 40);
  EXPECT_EQ(r.text, text_of(m, first(c.answer.tokens, 40), c.prompt.tokens));
  EXPECT_EQ(replayed(m, damaged, 40).result.verdict, Verdict::Same) << "the damage is behind these tokens";
  EXPECT_EQ(replayed(m, damaged, 41).result.position, 40);
  const Replayed elsewhere = replayed(other, c);
  EXPECT_EQ(elsewhere.result.subject, Subject::Logits);
  EXPECT_EQ(elsewhere.text, "") << "of another model nothing is the same";
}

// After the loss of a device an answer is computed from its beginning; its text was written in part.
TEST(Replay, ASecondBeginningWritesNothingTwice) {
  Machine m;
  Model& model = *m.engine.model;
  const Certificate c = m.write(sampled(2));
  std::string text;
  AuditOptions o;
  o.text = [&](std::string_view piece) { text += piece; };
  const AuditJob job{&c};
  auto auditor = *Auditor::create(job, model.plan(), *m.tokenizer, nullptr, o);
  const auto step = [&] {
    Batch batch;
    Auditor::Room room{8, 8};
    auditor->add(model, batch, room);
    auto out = model.forward(batch);
    ASSERT_TRUE(out);
    size_t k = 0;
    ASSERT_TRUE(auditor->take(model, *out, k));
  };
  ASSERT_TRUE(auditor->begin(model));
  while (text.size() < 40) ASSERT_NO_FATAL_FAILURE(step());
  ASSERT_FALSE(auditor->done());
  ASSERT_TRUE(auditor->begin(model));
  while (!auditor->done()) ASSERT_NO_FATAL_FAILURE(step());
  EXPECT_EQ(auditor->result().verdict, Verdict::Same);
  EXPECT_EQ(text, text_of(m, c));
}

TEST(Replay, ABranchKeepsItsFirstTokensAndIsAuditedAlone) {
  Machine m, reader("stories260K-q8_0.gguf", "threads=2", 7);
  for (const Answer& a : answers()) {
    const Certificate c = m.write(a.settings, a.grammar);
    for (const int n : {0, 1, 10}) {
      auto b = branch_with_seed(c, c.prompt.tokens, n, 99);
      ASSERT_TRUE(b) << b.error().message;
      const Written w = write(m, *b, c);
      const Certificate read = read_again(w.certificate);
      EXPECT_EQ(first(read.answer.tokens, size_t(n)), first(c.answer.tokens, size_t(n))) << a.what;
      EXPECT_EQ(read.origin.parent, certificate_digest(c));
      EXPECT_EQ(read.origin.tokens, n);
      EXPECT_EQ(read.rows(), w.generated.rows.size());
      const bool same = read.answer.tokens == c.answer.tokens;
      if (n == 0) { EXPECT_EQ(same, a.settings.sampler.greedy) << a.what; }
      const Replayed again = replayed(reader, read);
      EXPECT_EQ(again.result.verdict, Verdict::Same)
          << a.what << " at " << n << ": " << name_of(again.result.subject) << " " << again.result.position;
      EXPECT_EQ(size_t(again.result.rows), read.rows());
      EXPECT_EQ(again.text, text_of(m, read)) << "with the text of the kept tokens";
      EXPECT_EQ(reader.check(read, {.sample = 3, .seed = 1}).verdict, Verdict::Same) << a.what;
    }
  }
}

// The choices that a sampler makes with a seed are the same behind kept tokens as without a branch.
TEST(Replay, ABranchWithTheSameSeedIsTheSameAnswer) {
  Machine m;
  for (const Answer& a : answers()) {
    const Certificate c = m.write(a.settings, a.grammar);
    const auto b = branch_with_seed(c, c.prompt.tokens, 10, c.text.sampler.seed);
    EXPECT_EQ(write(m, *b, c).certificate.answer.tokens, c.answer.tokens) << a.what;
  }
}

TEST(Replay, SamplersWithAMemoryBeginAnewInABranch) {
  Machine m;
  GenerateSettings s = sampled(5);
  s.sampler.mirostat = 2;
  const Certificate c = m.write(s);
  const auto b = branch_with_seed(c, c.prompt.tokens, 30, 6);
  const Certificate read = read_again(write(m, *b, c).certificate);
  EXPECT_GT(read.answer.tokens.size(), 30u);
  EXPECT_EQ(replayed(m, read).result.verdict, Verdict::Same);
  EXPECT_EQ(m.check(read, {.sample = 3, .seed = 1}).verdict, Verdict::Same);
}

TEST(Replay, ForgedBranchesAreFound) {
  Machine m;
  const Certificate c = m.write(sampled(2));
  const auto b = branch_with_seed(c, c.prompt.tokens, 30, 77);
  const Certificate good = write(m, *b, c).certificate;
  const auto found = [&](const char* what, const std::function<void(Certificate&)>& forge, Subject subject,
                         int position) {
    Certificate forged = good;
    forge(forged);
    const AuditResult r = m.check(read_again(forged));
    EXPECT_STREQ(name_of(r.subject), name_of(subject)) << what << ": " << r.explanation;
    EXPECT_EQ(r.position, position) << what;
  };
  const auto exchange = [](Token& t) { t = t == 300 ? 301 : 300; };
  found(
      "a kept token", [&](auto& f) { exchange(f.answer.tokens[29]); }, Subject::Logits, 30);
  found(
      "a token", [&](auto& f) { exchange(f.answer.tokens[30]); }, Subject::Token, 30);
  found(
      "a later token", [&](auto& f) { exchange(f.answer.tokens[50]); }, Subject::Token, 50);
  found(
      "the digest of all", [](auto& f) { f.logits.chain[60] ^= 1; }, Subject::Chain, -1);
  Certificate more = good;
  more.origin.tokens = more.origin.kept = 31;
  EXPECT_FALSE(read_certificate(to_text(more))) << "it has a row for the token";
  more.origin = {good.origin.parent, 20, 30};
  EXPECT_FALSE(read_certificate(to_text(more)));
  more.origin = {good.origin.parent, 300, 300};
  EXPECT_FALSE(read_certificate(to_text(more)));
  more.origin = {"", 30, 30};
  EXPECT_FALSE(read_certificate(to_text(more)));
  more = good, more.version = 3;
  const auto newer = read_certificate(to_text(more));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::Unsupported);
}

TEST(Replay, AMessageBecomesPartOfThePrompt) {
  Machine m;
  const Certificate c = m.write(sampled(3));
  const std::vector<Token> message = m.tokenizer->encode("The dog", {.add_bos = false});
  const auto b = branch_with_message(c, c.prompt.tokens, 25, message);
  ASSERT_TRUE(b);
  const Certificate read = read_again(write(m, *b, c).certificate);
  std::vector<Token> prompt = c.prompt.tokens;
  prompt.insert(prompt.end(), c.answer.tokens.begin(), c.answer.tokens.begin() + 25);
  prompt.insert(prompt.end(), message.begin(), message.end());
  EXPECT_EQ(read.prompt.tokens, prompt);
  EXPECT_EQ(read.origin.tokens, 25);
  EXPECT_EQ(read.rows(), read.end_row());
  EXPECT_EQ(m.check(read).verdict, Verdict::Same);
}

TEST(Replay, BranchesOfBranchesAndOfPrivateCertificates) {
  Machine m;
  Certificate c = m.write(sampled(4));
  const std::vector<Token> prompt = std::exchange(c.prompt.tokens, {});
  const Certificate one = read_again(write(m, *branch_with_seed(c, prompt, 10, 5), c).certificate);
  EXPECT_TRUE(one.prompt.tokens.empty()) << "its origin is private";
  const Certificate two = read_again(write(m, *branch_with_seed(one, prompt, 30, 6), one).certificate);
  EXPECT_EQ(two.origin.parent, certificate_digest(one));
  EXPECT_EQ(first(two.answer.tokens, 30), first(one.answer.tokens, 30));
  EXPECT_EQ(m.check(one, {}, prompt).verdict, Verdict::Same);
  EXPECT_EQ(m.check(two, {}, prompt).verdict, Verdict::Same);
  const auto beyond = branch_with_seed(c, prompt, int(c.answer.tokens.size()) + 1, 5);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::Usage);
  EXPECT_NE(beyond.error().message.find("the answer has 80"), std::string::npos) << beyond.error().message;
  EXPECT_FALSE(branch_with_message(c, prompt, 3, {}));
}

}  // namespace
}  // namespace gimbal::test
