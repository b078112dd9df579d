// Pages of sequences, without a model: taken, shared, copied before they are written, returned; and where a
// sequence can go back to.
#include "runtime/sequence.h"

#include <gtest/gtest.h>

#include "model/state.h"
#include "support/sequences.h"

namespace gimbal::test {
namespace {

using Pages = std::vector<int32_t>;
Pages pages_of(const Sequence& s, size_t pool = 0) {
  const auto pages = s.pages(pool);
  return {pages.begin(), pages.end()};
}

TEST(Sequence, TakesAPageOf64PositionsAtATime) {
  SequencePool pool({{StateKind::Paged, 0, 4, 4}}, 2, 256, 64);
  auto s = *pool.create();
  EXPECT_EQ(pool.pages_wanted(*s, 1, 0), 1);
  EXPECT_EQ(pool.pages_wanted(*s, 64, 0), 1);
  EXPECT_EQ(pool.pages_wanted(*s, 65, 0), 2);
  ASSERT_TRUE(grow(pool, *s, counting(64)));
  EXPECT_EQ(pool.free_pages(0), 3);
  EXPECT_EQ(pool.pages_wanted(*s, 0, 0), 0);
  EXPECT_EQ(pool.pages_wanted(*s, 1, 0), 1);
  ASSERT_TRUE(grow(pool, *s, counting(1)));
  EXPECT_EQ(pool.free_pages(0), 2);
  EXPECT_EQ(pool.pages_wanted(*s, 63, 0), 0);
  EXPECT_EQ(pool.pages_wanted(*s, 64, 0), 1);
  EXPECT_EQ(s->truncate(64), 64);
  EXPECT_EQ(pool.free_pages(0), 3) << "the second page has no token any more";
  EXPECT_EQ(s->truncate(99), 64) << "there are no more";
  EXPECT_EQ(s->truncate(-1), 0);
  EXPECT_EQ(pool.free_pages(0), 4);
}

TEST(Sequence, AreAsManyAsTheModelWasLoadedFor) {
  SequencePool pool({{StateKind::Paged, 0, 4, 4}}, 2, 256, 64);
  auto a = *pool.create(), b = *pool.create();
  EXPECT_EQ(pool.create().error().code, Code::OutOfMemory);
  EXPECT_EQ(a->fork().error().code, Code::OutOfMemory);
  ASSERT_TRUE(grow(pool, *b, counting(65)));
  b.reset();
  EXPECT_EQ(pool.free_pages(0), 4);
  EXPECT_TRUE(a->fork());
}

TEST(Sequence, AForkSharesItsPagesUntilOneIsWritten) {
  for (const int length : {64, 65}) {
    SequencePool pool({{StateKind::Paged, 0, 4, 4}}, 2, 256, 64);
    auto a = *pool.create();
    ASSERT_TRUE(grow(pool, *a, counting(length)));
    const Pages before = pages_of(*a);
    auto b = *a->fork();
    EXPECT_EQ(pages_of(*b), before);
    EXPECT_EQ(pool.free_pages(0), 4 - int(before.size()));
    EXPECT_EQ(pool.pages_wanted(*b, 1, 0), 1) << length;
    pool.begin();
    pool.add_row(*b);
    ASSERT_TRUE(pool.take_pages());
    ASSERT_EQ(pool.copies().size(), length == 65 ? 1u : 0u) << "a whole page is not written again";
    if (length == 65) {
      EXPECT_EQ(pool.copies()[0].from, before[1]);
      EXPECT_EQ(pool.copies()[0].to, pages_of(*b)[1]);
      EXPECT_NE(pages_of(*b)[1], before[1]);
    }
    EXPECT_EQ(pages_of(*b)[0], before[0]);
    pool.roll_back(false);
    EXPECT_EQ(pages_of(*b), before);
    EXPECT_EQ(pool.free_pages(0), 4 - int(before.size()));
    ASSERT_TRUE(grow(pool, *b, counting(1)));
    EXPECT_EQ(pages_of(*a), before);
    a.reset();
    EXPECT_EQ(pool.free_pages(0), 2) << "the fork holds two";
    EXPECT_EQ(b->truncate(0), 0);
    EXPECT_EQ(pool.free_pages(0), 4);
  }
}

TEST(Sequence, TooFewPagesChangeNothing) {
  SequencePool pool({{StateKind::Paged, 0, 2, 4}}, 2, 256, 64);
  auto a = *pool.create(), b = *pool.create();
  ASSERT_TRUE(grow(pool, *a, counting(64)));
  pool.begin();
  for (int i = 0; i < 2; i++) pool.add_row(i ? *a : *b);
  EXPECT_EQ(pool.take_pages().error().code, Code::OutOfMemory) << "both need one";
  EXPECT_EQ(pool.free_pages(0), 1);
  EXPECT_EQ(pages_of(*a).size(), 1u);
  EXPECT_TRUE(pages_of(*b).empty());
  EXPECT_TRUE(grow(pool, *a, counting(1)));
  EXPECT_EQ(a->computed(), 65);
}

// A page goes once no row attends to it, with 64 positions to go back.
TEST(Sequence, LeavesAWindowsPages) {
  SequencePool pool({{StateKind::Paged, 100, 8, 8}}, 1, 512, 64);
  auto s = *pool.create();
  ASSERT_TRUE(grow(pool, *s, counting(227)));
  EXPECT_EQ(s->first_page(0), 0u);
  EXPECT_EQ(s->keeps(1), 1);
  ASSERT_TRUE(grow(pool, *s, counting(1)));
  EXPECT_EQ(s->first_page(0), 1u);
  EXPECT_EQ(pool.free_pages(0), 5);
  EXPECT_EQ(s->keeps(163), 163) << "whose row attends to 64 and later ones";
  EXPECT_EQ(s->keeps(162), 0);
  EXPECT_EQ(s->truncate(162), 0);
  EXPECT_EQ(s->tokens().size(), 162u) << "to be computed again";
  EXPECT_EQ(pool.free_pages(0), 8);
}

TEST(Sequence, ARecurrentStateReturnsToACheckpoint) {
  SequencePool pool({{StateKind::Recurrent, 0, 6, 1}}, 1, 2048, 64);
  auto s = *pool.create();
  ASSERT_TRUE(grow(pool, *s, counting(256)));
  EXPECT_EQ(s->keeps(256), 256);
  EXPECT_EQ(s->keeps(255), 0);
  ASSERT_TRUE(grow(pool, *s, counting(64)));
  EXPECT_EQ(pool.free_pages(0), 4) << "the state and one checkpoint";
  EXPECT_EQ(s->keeps(319), 256);
  EXPECT_EQ(s->keeps(256), 256);
  EXPECT_EQ(s->keeps(255), 0);
  ASSERT_TRUE(grow(pool, *s, counting(1344 - 320)));  // checkpoints at 256, 512, ... 1280
  EXPECT_EQ(pool.free_pages(0), 1) << "the state and four checkpoints";
  EXPECT_EQ(s->keeps(512), 512);
  EXPECT_EQ(s->keeps(511), 0) << "the oldest of five is gone";
  EXPECT_EQ(s->truncate(600), 512);
  EXPECT_EQ(s->tokens().size(), 600u);
  EXPECT_EQ(pool.free_pages(0), 5) << "the checkpoint is the state";
  pool.begin();
  pool.add_row(*s);
  ASSERT_TRUE(pool.take_pages());
  EXPECT_EQ(pool.copies().size(), 1u) << "it is copied before it is written";
  pool.roll_back(true);  // the step has begun: the state is lost
  EXPECT_EQ(s->computed(), 512);
}

TEST(Sequence, AMarkIsOnePlaceMore) {
  SequencePool pool({{StateKind::Recurrent, 0, 6, 1}}, 1, 2048, 64);
  auto s = *pool.create();
  ASSERT_TRUE(grow(pool, *s, counting(70)));
  s->mark();
  ASSERT_TRUE(grow(pool, *s, counting(5)));
  EXPECT_EQ(s->keeps(74), 70);
  EXPECT_EQ(s->keeps(70), 70);
  EXPECT_EQ(s->keeps(69), 0);
  s->mark();
  ASSERT_TRUE(grow(pool, *s, counting(3)));
  EXPECT_EQ(s->keeps(74), 0) << "the first mark was replaced";
  EXPECT_EQ(s->truncate(77), 75);
  EXPECT_EQ(s->truncate(10), 0);
  EXPECT_EQ(pool.free_pages(0), 6);
}

TEST(Sequence, TheStateBehindTheFirstTokenCanBeMarked) {
  SequencePool pool({{StateKind::Recurrent, 0, 6, 1}}, 1, 2048, 64);
  auto s = *pool.create();
  ASSERT_TRUE(grow(pool, *s, counting(1)));
  const Pages first = pages_of(*s);
  s->mark();
  ASSERT_TRUE(grow(pool, *s, counting(5)));
  EXPECT_NE(pages_of(*s), first) << "the marked state is not written to";
  EXPECT_EQ(s->truncate(1), 1);
  EXPECT_EQ(pages_of(*s), first) << "and it is the state again";
  EXPECT_EQ(pool.free_pages(0), 5);
}

TEST(Sequence, AdoptsPagesThatItCouldHave) {
  SequencePool pool({{StateKind::Paged, 0, 5, 4}, {StateKind::Paged, 100, 5, 4}}, 2, 256, 64);
  auto s = *pool.create();
  const auto adopt = [&](int n, std::vector<uint32_t> first) {
    auto ok = pool.adopt(*s, counting(n), first);
    return ok ? "" : ok.error().code == Code::Malformed ? "malformed" : "too few";
  };
  EXPECT_STREQ(adopt(0, {0, 0}), "malformed");
  EXPECT_STREQ(adopt(257, {0, 0}), "malformed");
  EXPECT_STREQ(adopt(100, {0}), "malformed");
  EXPECT_STREQ(adopt(200, {1, 0}), "malformed") << "all attend to the first page";
  EXPECT_STREQ(adopt(162, {0, 1}), "malformed") << "so does the window";
  EXPECT_STREQ(adopt(163, {0, 1}), "");
  EXPECT_EQ(s->computed(), 163);
  EXPECT_EQ(pool.free_pages(0), 2);
  EXPECT_EQ(pool.free_pages(1), 3);
  EXPECT_STREQ(adopt(1, {0, 0}), "malformed") << "it is not empty";
  auto other = *pool.create();
  EXPECT_EQ(pool.adopt(*other, counting(129), std::vector<uint32_t>{0, 0}).error().code, Code::OutOfMemory);
  EXPECT_EQ(pool.free_pages(0), 2);
  EXPECT_EQ(pool.free_pages(1), 3);
  EXPECT_TRUE(pool.adopt(*other, counting(128), std::vector<uint32_t>{0, 0}));
}

TEST(StatePool, HasThePagesThatItsSequencesNeed) {
  const StatePool paged{StateKind::Paged, 0, 0, 0}, window{StateKind::Paged, 64, 0, 0},
      state{StateKind::Recurrent, 0, 0, 0};
  EXPECT_EQ(sized(paged, 2, 128, 128, 48, false).table, 2);
  EXPECT_EQ(sized(paged, 2, 129, 128, 48, false).table, 3);
  EXPECT_EQ(sized(paged, 2, 128, 128, 48, false).pages, 2);
  EXPECT_EQ(sized(paged, 2, 128, 129, 48, false).pages, 3);
  EXPECT_EQ(sized(paged, 2, 128, 9999, 48, false).pages, 4) << "no more than a context for each";
  EXPECT_EQ(sized(window, 2, 1024, 64, 64, false).pages, 2 * (3 + 1))
      << "window, slack and a batch, from within a page";
  EXPECT_EQ(sized(window, 2, 1024, 64, 65, false).pages, 2 * (4 + 1));
  EXPECT_EQ(sized(window, 2, 128, 64, 64, false).pages, 2 * 2);
  EXPECT_EQ(sized(state, 3, 1024, 64, 64, false).pages, 3 * (1 + kMaxCheckpoints));
  EXPECT_EQ(sized(state, 3, 1024, 64, 64, true).pages, 3 * (2 + kMaxCheckpoints));
  EXPECT_EQ(sized(state, 3, 1024, 64, 64, true).table, 1);
}

}  // namespace
}  // namespace gimbal::test
