// Grammars of requests: compiled beside the engine, by a std::thread, and the last ones kept.
#include "scheduler/grammars.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <semaphore>

#include "files/gguf.h"
#include "model/embedded_model.h"

namespace gimbal::test {
namespace {

using Answer = std::optional<Result<Constraint>>;

class GrammarsTest : public testing::Test {
 protected:
  // `then_` is called before this returns, for a kept grammar, or later.
  struct Asked {
    bool at_once;
    std::future<Answer> answer;
  };
  Asked ask(const std::string& gbnf) {
    auto told = std::make_shared<std::promise<Answer>>();
    auto answer = told->get_future();
    const auto here = std::this_thread::get_id();
    auto same = std::make_shared<std::atomic<bool>>(false);
    const Status ok = grammars_.compile(gbnf, [=](Answer a) {
      *same = std::this_thread::get_id() == here;
      told->set_value(std::move(a));
    });
    EXPECT_TRUE(ok) << ok.error().message;
    const bool there = answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    return {there && *same, std::move(answer)};
  }
  // Whether it was kept; it is compiled otherwise.
  bool kept(const std::string& gbnf) {
    Asked asked = ask(gbnf);
    const Answer a = asked.answer.get();
    EXPECT_TRUE(a && *a) << gbnf;
    return asked.at_once;
  }
  static std::string text(int n) { return "root ::= \"" + std::to_string(n) + "\""; }

  const ModelSource file_ = *parse_gguf(embedded_model(), "the built-in model");
  const std::unique_ptr<Tokenizer> tokenizer_ = *Tokenizer::create(file_.metadata());
  Grammars grammars_{*tokenizer_, tokenizer_->size()};
};

TEST_F(GrammarsTest, AGrammarAllowsItsTokens) {
  Answer a = ask("root ::= \"Once\"").answer.get();
  ASSERT_TRUE(a && *a);
  const auto mask = (*a)->allowed();
  ASSERT_TRUE(mask) << mask.error().message;
  int allowed = 0;
  for (Token t = 0; t < tokenizer_->size(); t++) {
    const std::string piece = tokenizer_->piece(t);
    if (!Constraint::allows(*mask, size_t(t))) continue;
    allowed++;
    EXPECT_TRUE(!piece.empty() && std::string("Once").starts_with(piece)) << piece;
  }
  EXPECT_GT(allowed, 0);
}

TEST_F(GrammarsTest, TheLastEightAreKept) {
  for (int i = 0; i < 8; i++) EXPECT_FALSE(kept(text(i)));
  EXPECT_TRUE(kept(text(0))) << "which is the last used now";
  EXPECT_FALSE(kept(text(8)));
  EXPECT_FALSE(kept(text(1))) << "was used the longest ago; 2 makes room for it";
  for (int i : {0, 3, 4, 5, 6, 7, 8, 1}) EXPECT_TRUE(kept(text(i))) << i;
  EXPECT_FALSE(kept(text(2)));
}

TEST_F(GrammarsTest, WhatIsWrongIsToldAndNotKept) {
  for (int i = 0; i < 2; i++) {
    Asked asked = ask("root ::= (");
    const Answer a = asked.answer.get();
    EXPECT_FALSE(asked.at_once);
    ASSERT_TRUE(a);
    ASSERT_FALSE(*a);
    EXPECT_EQ(a->error().code, Code::Usage);
  }
  EXPECT_FALSE(kept(text(1)));
  EXPECT_TRUE(kept(text(1)));
}

TEST_F(GrammarsTest, ThoseThatWaitForOneAnotherAreAllAnswered) {
  std::vector<Asked> asked;
  for (int i = 0; i < 20; i++) asked.push_back(ask(text(i % 3)));
  for (Asked& one : asked) {
    const Answer a = one.answer.get();
    EXPECT_TRUE(a && *a);
  }
  for (int i = 0; i < 3; i++) EXPECT_TRUE(kept(text(i)));
}

TEST_F(GrammarsTest, TheEndAnswersThoseThatWait) {
  std::binary_semaphore runs(0), go_on(0);
  ASSERT_TRUE(grammars_.compile(text(0), [&](Answer) {
    runs.release();
    go_on.acquire();
  }));
  runs.acquire();
  std::vector<Asked> asked;
  for (int i = 1; i < 4; i++) asked.push_back(ask(text(i)));
  std::thread end([&] { grammars_.stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  go_on.release();
  end.join();
  for (Asked& one : asked) {
    ASSERT_EQ(one.answer.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    const Answer a = one.answer.get();
    EXPECT_TRUE(!a || *a) << "not compiled, or compiled before the end";
  }
}

}  // namespace
}  // namespace gimbal::test
