// Conversations: limits, forgetting, and many at once sharing one model's memory.
// Threads: the device's.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

using Logits = std::vector<float>;

Engine open(int context, int sequences) {
  EngineOptions o;
  o.run.context = context, o.run.sequences = sequences, o.run.batch = 32, o.run.logit_rows = 4;
  auto e = open_engine(golden_dir() + "/stories/stories260K-q8_0.gguf", o);
  if (e) return std::move(*e);
  ADD_FAILURE() << e.error().message;
  std::exit(1);
}

std::unique_ptr<Session> start(Engine& e) {
  auto s = Session::create(*e.model);
  EXPECT_TRUE(s) << s.error().message;
  return s ? std::move(*s) : nullptr;
}

std::vector<int32_t> text(int seed, int n) {
  std::mt19937 r{unsigned(seed)};
  std::vector<int32_t> t = {1};
  while (int(t.size()) < n) t.push_back(int32_t(3 + r() % 500));
  return t;
}

Logits last(Session& s, std::span<const int32_t> tokens) {
  Logits out;
  auto ok = s.advance(tokens, Session::Wanted::Last,
                      [&](size_t, std::span<const float> row) { out.assign(row.begin(), row.end()); });
  EXPECT_TRUE(ok) << ok.error().message;
  return out;
}

TEST(Session, AFullContextIsAnErrorThatSaysHowLargeItIs) {
  Engine e = open(70, 1);
  auto s = start(e);
  EXPECT_EQ(s->room(), 70);
  const auto tokens = text(1, 71);
  auto full = s->advance(tokens, Session::Wanted::None, {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::Failed);
  EXPECT_NE(full.error().message.find("context full"), std::string::npos);
  EXPECT_NE(full.error().message.find("70"), std::string::npos) << full.error().message;
  EXPECT_NE(full.error().remedy.find("'context'"), std::string::npos) << full.error().remedy;
  EXPECT_NE(full.error().remedy.find(std::to_string(e.model->config().context)), std::string::npos);
  EXPECT_EQ(s->position(), 70) << "what fitted is kept, as the header says";
  EXPECT_EQ(s->room(), 0);
  EXPECT_FALSE(s->advance(std::span(tokens).first(1), Session::Wanted::None, {}));
  EXPECT_TRUE(s->advance({}, Session::Wanted::Last, {})) << "nothing fits always";
  s->rewind(69);
  EXPECT_EQ(last(*s, std::span(tokens).subspan(69, 1)).size(), 512u);
}

// The page table has exactly as many pages as the context needs when that is a multiple of a page's 64
// positions: taking one too early, or keeping one too long, has nowhere to come from.
TEST(Session, AContextOfWholePagesIsFilledToItsLastPosition) {
  for (int context : {64, 128, 512}) {
    SCOPED_TRACE(context);
    Engine e = open(context, 1), larger = open(context + 1, 1);
    const auto tokens = text(8, context + 1);
    const auto fitting = std::span(tokens).first(size_t(context));
    const Logits want = last(*start(larger), fitting);
    auto at_once = start(e);
    EXPECT_EQ(last(*at_once, fitting), want);
    EXPECT_EQ(at_once->room(), 0);
    auto full = at_once->advance(std::span(tokens).last(1), Session::Wanted::None, {});
    ASSERT_FALSE(full);
    EXPECT_NE(full.error().message.find("context full"), std::string::npos) << full.error().message;
    at_once->rewind(context - 64);
    EXPECT_EQ(last(*at_once, fitting.last(64)), want) << "the last page again";
    const int again = std::min(context, 65);
    at_once->rewind(context - again);
    Logits one_by_one;
    for (int32_t token : fitting.last(size_t(again))) one_by_one = last(*at_once, std::span(&token, 1));
    EXPECT_EQ(one_by_one, want);
    at_once.reset();
    EXPECT_EQ(last(*start(e), fitting), want) << "every page came back";
  }
}

TEST(Session, ATokenOutOfRangeChangesNothing) {
  Engine e = open(100, 1);
  auto s = start(e);
  const auto tokens = text(2, 40);
  last(*s, std::span(tokens).first(20));
  for (int32_t bad : {-1, 512, INT32_MAX, INT32_MIN}) {
    std::vector<int32_t> wrong(tokens.begin() + 20, tokens.end());
    wrong.push_back(bad);
    auto no = s->advance(wrong, Session::Wanted::None, {});
    ASSERT_FALSE(no) << bad;
    EXPECT_EQ(no.error().code, Code::Usage);
    EXPECT_NE(no.error().message.find(std::to_string(bad)), std::string::npos) << no.error().message;
    EXPECT_NE(no.error().message.find("511"), std::string::npos) << no.error().message;
    EXPECT_EQ(s->position(), 20);
  }
  const Logits after = last(*s, std::span(tokens).subspan(20));
  s.reset();
  EXPECT_EQ(after, last(*start(e), tokens));
}

TEST(Session, RewindingForgets) {
  Engine e = open(200, 1);
  const auto a = text(3, 150), b = text(4, 80);
  for (int keep : {0, 1, 63, 64, 65, 128, 149, 150}) {
    std::vector<int32_t> joined(a.begin(), a.begin() + keep);
    const int n = std::min(50, 200 - keep);
    joined.insert(joined.end(), b.begin(), b.begin() + n);
    const Logits want = last(*start(e), joined);
    auto s = start(e);
    last(*s, a);
    s->rewind(keep);
    EXPECT_EQ(s->position(), keep);
    EXPECT_EQ(last(*s, std::span(b).first(size_t(n))), want) << "after keeping " << keep;
    s->rewind(1000);
    EXPECT_EQ(s->position(), keep + n) << "there is nothing there to go forward to";
    s->rewind(-5);
    EXPECT_EQ(s->position(), 0);
    EXPECT_EQ(last(*s, joined), want);
  }
}

TEST(Session, ManyAtOnceGiveTheBitsOfEachAlone) {
  const int sequences = 4, length = 150;
  Engine e = open(length, sequences);
  std::vector<std::vector<int32_t>> tokens;
  std::vector<Logits> want;
  for (int i = 0; i < sequences; i++) {
    tokens.push_back(text(10 + i, length));
    want.push_back(last(*start(e), tokens.back()));
  }
  ASSERT_NE(want[0], want[1]);
  std::mt19937 r(5);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < sequences; i++) sessions.push_back(start(e));
  std::vector<Logits> got(sequences);
  for (int left = sequences; left;) {
    const size_t i = r() % sequences;
    Session& s = *sessions[i];
    if (s.room() == 0) continue;
    const size_t at = size_t(s.position()), n = std::min<size_t>(1 + r() % 40, size_t(s.room()));
    got[i] = last(s, std::span(tokens[i]).subspan(at, n));
    if (r() % 8 == 0) s.rewind(int(at));  // gives pages back while others take them
    else left -= s.room() == 0;
  }
  for (int i = 0; i < sequences; i++) EXPECT_EQ(got[size_t(i)], want[size_t(i)]) << "conversation " << i;
}

TEST(Session, WhenAllAreTakenTheNextIsRefusedUntilOneEnds) {
  Engine e = open(130, 2);
  const auto tokens = text(6, 130);
  auto a = start(e), b = start(e);
  auto none = Session::create(*e.model);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::OutOfMemory);
  EXPECT_NE(none.error().message.find("2"), std::string::npos) << none.error().message;
  const Logits want = last(*a, tokens);
  // Far more pages in all than there are: each session must give its own back, and none may see old contents.
  for (int round = 0; round < 12; round++) {
    (round % 2 ? a : b).reset();
    auto c = start(e);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->position(), 0);
    EXPECT_EQ(last(*c, std::span(tokens)), want) << "round " << round;
    (round % 2 ? a : b) = std::move(c);
  }
}

TEST(Session, LogitsComeForTheTokensThatWereAskedFor) {
  Engine e = open(100, 1);
  auto s = start(e);
  const auto tokens = text(7, 50);
  std::vector<size_t> seen;
  Session::Sink note = [&](size_t i, std::span<const float> row) {
    seen.push_back(i);
    EXPECT_EQ(row.size(), 512u);
  };
  ASSERT_TRUE(s->advance(tokens, Session::Wanted::None, note));
  EXPECT_TRUE(seen.empty());
  s->rewind(0);
  ASSERT_TRUE(s->advance(tokens, Session::Wanted::Last, note));
  EXPECT_EQ(seen, std::vector<size_t>{49});
  s->rewind(0), seen.clear();
  ASSERT_TRUE(s->advance(tokens, Session::Wanted::All, note));
  ASSERT_EQ(seen.size(), 50u);
  for (size_t i = 0; i < seen.size(); i++) EXPECT_EQ(seen[i], i);
}

}  // namespace
}  // namespace gimbal::test
