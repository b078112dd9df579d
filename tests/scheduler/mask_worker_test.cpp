// Masks that take long are found beside the engine's steps, by a std::thread.
#include "scheduler/mask_worker.h"

#include <gtest/gtest.h>

#include <condition_variable>

#include "support/grammars.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

constexpr const char* kNames[] = {"qwen2"};

std::shared_ptr<const TokenTree> tree() {
  static const auto it = [] {
    auto v = reference_vocabularies(kNames);
    return TokenTree::create(*v.at(0).tokenizer, v.at(0).tokenizer->size());
  }();
  return it;
}

std::shared_ptr<MaskedText> text(const std::string& gbnf) {
  auto c = Constraint::create(Matcher::parsed(gbnf), tree());
  EXPECT_TRUE(c) << c.error().message;
  return std::make_shared<MaskedText>(*c);
}

TEST(MaskWorker, AStepHasABoundForAllTogetherAndTheRestIsFoundBeside) {
  std::mutex mutex;
  std::condition_variable changed;
  int found = 0;
  MaskWorker masks([&] {
    const std::lock_guard lock(mutex);
    found++;
    changed.notify_all();
  });
  const std::string hostile = overlapping_grammar(40);
  std::vector<std::shared_ptr<MaskedText>> texts;
  for (int i = 0; i < 6; i++) texts.push_back(text(hostile));
  const auto easy = text("root ::= .*");
  EXPECT_TRUE(masks.find(easy, INT_MAX));
  for (const auto& t : texts) EXPECT_FALSE(masks.find(t, INT_MAX));
  EXPECT_TRUE(masks.find(easy, INT_MAX)) << "what is known takes no time";
  EXPECT_FALSE(masks.find(text("root ::= [a-z]*"), INT_MAX)) << "the step has no time left";
  masks.begin_step();
  EXPECT_TRUE(masks.find(text("root ::= [a-z]*"), INT_MAX));
  {
    std::unique_lock lock(mutex);
    // A mask without a waiting request may have been left out.
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return found >= 6; }));
  }
  auto whole = text(hostile);
  const auto want = whole->constraint.allowed();
  ASSERT_TRUE(want) << want.error().message;
  for (const auto& t : texts) {
    while (!t->known) std::this_thread::yield();
    EXPECT_TRUE(masks.find(t, INT_MAX));
    const auto got = t->constraint.allowed();
    ASSERT_TRUE(got);
    EXPECT_TRUE(std::equal(want->begin(), want->end(), got->begin(), got->end()));
  }
}

TEST(MaskWorker, OneThatHasNothingToDoIsWoken) {
  std::mutex mutex;
  std::condition_variable changed;
  int found = 0;
  MaskWorker masks([&] {
    const std::lock_guard lock(mutex);
    found++;
    changed.notify_all();
  });
  for (int i = 1; i <= 3; i++) {
    masks.begin_step();
    const auto slow = text(overlapping_grammar(40));
    ASSERT_FALSE(masks.find(slow, INT_MAX));
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return found == i; })) << i;
  }
}

TEST(MaskWorker, EndWhileTheyAreFound) {
  for (int i = 0; i < 3; i++) {
    MaskWorker masks;
    for (int k = 0; k < 4; k++) masks.find(text(overlapping_grammar(40)), INT_MAX);
  }
}

}  // namespace
}  // namespace gimbal::test
