// Which texts are kept for others that begin alike, and which go first, without a model.
#include "scheduler/prefix_cache.h"

#include <gtest/gtest.h>

#include "support/sequences.h"

namespace gimbal::test {
namespace {

class PrefixCacheTest : public testing::Test {
 protected:
  // With so many tokens from `from` on.
  std::unique_ptr<Sequence> text(int n, int from = 0) {
    auto s = *pool_.create();
    EXPECT_TRUE(grow(pool_, *s, counting(n, from)));
    return s;
  }
  const Sequence* keep(int n, int from = 0) {
    auto s = text(n, from);
    const Sequence* const where = s.get();
    cache_.keep(std::move(s));
    return where;
  }
  int found(int n, int from = 0) const { return cache_.find(InputView(counting(n, from))).tokens; }

  SequencePool pool_{{{StateKind::Paged, 0, 32, 8}}, 8, 512, 64};
  PrefixCache cache_;
};

TEST_F(PrefixCacheTest, FindsTheLongestBeginning) {
  EXPECT_EQ(found(10), 0) << "none is kept";
  cache_.keep(*pool_.create());
  EXPECT_EQ(cache_.count(), 0) << "an empty text is of no use";
  const Sequence *const shorter = keep(100), *const other = keep(30, 1000);
  EXPECT_EQ(found(200), 100);
  EXPECT_EQ(found(100), 100);
  EXPECT_EQ(found(99), 99);
  EXPECT_EQ(found(40, 1000), 30);
  EXPECT_EQ(found(40, 1), 0);
  EXPECT_EQ(cache_.find(InputView(counting(40, 1000))).sequence, other);
  EXPECT_EQ(cache_.find(InputView(counting(40, 1))).sequence, nullptr);
  EXPECT_EQ(cache_.take(other).get(), other);
  EXPECT_EQ(cache_.count(), 1);
  EXPECT_EQ(found(40, 1000), 0);
  EXPECT_EQ(cache_.find(InputView(counting(10))).sequence, shorter);
}

TEST_F(PrefixCacheTest, ATextWithinAnotherIsNotKeptTwice) {
  keep(100);
  const Sequence* const longer = keep(150);
  EXPECT_EQ(cache_.count(), 1);
  EXPECT_EQ(found(200), 150);
  keep(20, 1000);
  keep(120);  // within the first, which counts as used
  EXPECT_EQ(cache_.count(), 2);
  EXPECT_TRUE(cache_.drop(nullptr));
  EXPECT_EQ(found(20, 1000), 0);
  EXPECT_EQ(cache_.find(InputView(counting(200))).sequence, longer);
  keep(150);
  EXPECT_EQ(cache_.count(), 1) << "the same text";
}

TEST_F(PrefixCacheTest, WhatWasUsedLongestAgoGoesFirstButForOne) {
  const Sequence *const a = keep(10, 0), *const b = keep(10, 100);
  keep(10, 200);
  cache_.used(a);
  EXPECT_TRUE(cache_.drop(b)) << "the oldest is to stay: the next one goes";
  EXPECT_EQ(found(10, 200), 0);
  EXPECT_TRUE(cache_.drop(nullptr));
  EXPECT_EQ(found(10, 100), 0);
  EXPECT_FALSE(cache_.drop(a));
  EXPECT_TRUE(cache_.drop(nullptr));
  EXPECT_FALSE(cache_.drop(nullptr));
  EXPECT_EQ(pool_.free_pages(0), 32);
}

TEST_F(PrefixCacheTest, ShrinksByThePageOfTheOldest) {
  const Sequence* const old = keep(129);
  keep(65, 1000);
  EXPECT_TRUE(cache_.shrink());
  EXPECT_EQ(found(200), 128);
  EXPECT_TRUE(cache_.shrink());
  EXPECT_EQ(found(200), 64);
  EXPECT_TRUE(cache_.shrink(old)) << "which is to stay";
  EXPECT_EQ(found(200), 64);
  EXPECT_EQ(found(100, 1000), 64);
  EXPECT_TRUE(cache_.shrink());
  EXPECT_EQ(cache_.count(), 1) << "nothing is left of it";
  EXPECT_EQ(pool_.free_pages(0), 31);
  EXPECT_TRUE(cache_.shrink());
  EXPECT_FALSE(cache_.shrink());
  EXPECT_EQ(pool_.free_pages(0), 32);
}

}  // namespace
}  // namespace gimbal::test
