// What architectures declare, tried with some that are made up here: parts of tensors as weights, embeddings
// in place of tokens, hidden states as results, caches of several widths and windows, and a state that every
// position changes. The yardstick is the plain llama with the same numbers, or the same text computed alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>

#include "files/gguf.h"
#include "support/declared.h"

namespace gimbal::test {
namespace {

class Declared : public testing::Test {
 protected:
  static RunOptions options(const ModelArch* arch = nullptr) {
    RunOptions o;
    o.context = 300, o.batch = 16, o.logit_rows = 8, o.cache_type = DType::F32, o.arch = arch;
    return o;
  }
  std::unique_ptr<Model> load(const Form& form, const RunOptions& o, size_t stages = 1) {
    files_.push_back(model_file(form));
    auto file = parse_gguf(std::as_bytes(std::span(files_.back())), "small.gguf");
    EXPECT_TRUE(file) << file.error().message;
    std::vector<Placement> where = {{cpu_.get(), 2, ""}};
    if (stages == 2) where = {{cpu_.get(), 1, ""}, {cpu_.get(), 1, ""}};
    auto m = load_placed(*file, where, o);
    if (m) return std::move(*m);
    failed_ = m.error();
    return nullptr;
  }
  static Text text(int n) { return any_tokens(n, kVocabulary); }

  std::deque<std::string> files_;
  Error failed_;
  const std::unique_ptr<Device> cpu_ = open_one("cpu", 0, "threads=1");
};

TEST_F(Declared, PartsOfTensorsAreWeightsLikeWholeOnes) {
  const auto plain = load({}, options());
  ASSERT_TRUE(plain) << failed_.message;
  for (size_t stages : {1u, 2u}) {
    const auto joined = load({.joined_qkv = true, .joined_ffn = true}, options(&kJoined), stages);
    ASSERT_TRUE(joined) << failed_.message;
    EXPECT_EQ(bits_differ(logits_of(*plain, text(50)), logits_of(*joined, text(50))), "") << stages;
  }
}

TEST_F(Declared, RowsThatNobodyUsesAreAnError) {
  EXPECT_FALSE(load({.joined_qkv = true, .joined_ffn = true, .extra_row = true}, options(&kJoined)));
  EXPECT_NE(failed_.message.find("attn_qkv.weight"), std::string::npos) << failed_.message;
  static const ModelArch kHalf{
      "half", [](Recorder& m) {
        record_blocks(m, {[](Recorder& m, Value h) {
                            ProgramBuilder& p = m.p;
                            const Value q = p.linear(m.matrix_rows("attn_qkv.weight", kWidth, 0, 8, 16), h),
                                        k = p.linear(m.matrix_rows("attn_qkv.weight", kWidth, 8, 4, 16), h);
                            return self_attention(m, {q, k, k}, 0.5f);
                          },
                          true});
      }};
  EXPECT_FALSE(load({.joined_qkv = true, .joined_ffn = true}, options(&kHalf)));
  EXPECT_NE(failed_.message.find("4 of 16 rows of tensor 'blk.0.attn_qkv.weight'"), std::string::npos)
      << failed_.message;
}

TEST_F(Declared, EmbeddingsGiveTheBitsOfTheirTokens) {
  const Numbers table = numbers(1, kWidth * kVocabulary);
  const Text tokens = text(20);
  RunOptions o = options();
  o.embeddings = true, o.hidden = true, o.sequences = 3;
  const EmbeddingsPtr rows = *Embeddings::create(table, kWidth);
  for (size_t stages : {1u, 2u}) {
    const auto m = load({}, o, stages);
    ASSERT_TRUE(m) << failed_.message;
    auto by_token = *m->new_sequence(), by_embedding = *m->new_sequence();
    // Tokens and embeddings, alone and mixed, in batches of several lengths.
    for (int at = 0, n = 1; at < 20; at += n, n = std::min(5, 20 - at)) {
      std::vector<Numbers> got[2];
      for (bool embedded : {false, true}) {
        Batch b;
        for (int i = at; i < at + n; i++) {
          const int32_t t = tokens[size_t(i)];
          const bool row = embedded && (at % 3 == 0 || i % 2 == 0);
          b.rows.push_back({embedded ? by_embedding.get() : by_token.get(),
                            row ? InputItem{kNoToken, &rows, t} : InputItem{t},
                            i,
                            {.logits = true, .hidden = true}});
        }
        auto out = m->forward(b);
        ASSERT_TRUE(out) << out.error().message;
        for (size_t k = 0; k < size_t(n); k++) {
          got[embedded].emplace_back(out->logits(k).begin(), out->logits(k).end());
          got[embedded].emplace_back(out->hidden(k).begin(), out->hidden(k).end());
        }
      }
      for (size_t k = 0; k < got[0].size(); k++) EXPECT_EQ(bits_differ(got[0][k], got[1][k]), "") << at;
      // The hidden state is what the head, the table here, makes the logits of.
      for (int v = 0; v < kVocabulary; v++) {
        float sum = 0;
        for (int i = 0; i < kWidth; i++)
          sum = std::fma(table[size_t(v * kWidth + i)], got[0][1][size_t(i)], sum);
        EXPECT_EQ(got[0][0][size_t(v)], 0.0f + sum) << v;
      }
    }
    const auto plain = load({}, options(), stages);
    ASSERT_TRUE(plain) << failed_.message;
    EXPECT_EQ(bits_differ(logits_of(*m, tokens), logits_of(*plain, tokens)), "") << "tokens alone";
    EXPECT_FALSE(m->forward({{{by_token.get(), InputItem{kNoToken}, 20, {}}}, 0})) << "no embedding";
    EXPECT_FALSE(m->forward({{{by_token.get(), InputItem{kNoToken, &rows, kVocabulary}, 20, {}}}, 0}));
  }
  const auto plain = load({}, options());
  auto s = *plain->new_sequence();
  EXPECT_FALSE(plain->forward({{{s.get(), InputItem{kNoToken, &rows, 0}, 0, {}}}, 0}))
      << "not loaded for embeddings";
  EXPECT_FALSE(plain->forward({{{s.get(), 1, 0, {.hidden = true}}}, 0})) << "not loaded for hidden states";
}

TEST_F(Declared, CachesOfOtherWidthsAndWindowsShareNothingButTheSequence) {
  const auto bounded = load({}, options(&kWindowed)), unbounded = load({}, options(&kUnbounded));
  ASSERT_TRUE(bounded && unbounded) << failed_.message;
  EXPECT_EQ(bits_differ(logits_of(*bounded, text(300)), logits_of(*unbounded, text(300))), "");
  ASSERT_EQ(bounded->plan().pools.size(), 2u);
  EXPECT_EQ(bounded->plan().pools[0].pages, 5);
  EXPECT_LT(bounded->plan().pools[1].pages, 5) << "the window and not the context";
  EXPECT_LT(bounded->plan().last().memory.cache, unbounded->plan().last().memory.cache);
  const Text whole = text(300);
  // Back by a little the window is still there; back by much, it is not, and all is computed anew.
  for (int keep : {290, 270, 100, 0}) {
    auto session = *Session::create(*bounded);
    ASSERT_TRUE(session->advance(text(300), Session::Wanted::None, {}));
    session->rewind(keep);
    Numbers got;
    ASSERT_TRUE(session->advance(std::span(whole).subspan(size_t(keep)), Session::Wanted::Last,
                                 [&](size_t, std::span<const float> l) { got.assign(l.begin(), l.end()); }));
    const auto want = logits_of(*unbounded, text(300));
    EXPECT_EQ(bits_differ(got, {want.end() - kVocabulary, want.end()}), "") << keep;
  }
  auto sequence = *bounded->new_sequence();
  for (int i = 0; i < 300; i++) {
    const Batch one{{{sequence.get(), text(300)[size_t(i)], i, {}}}, 0};
    ASSERT_TRUE(bounded->forward(one));
  }
  EXPECT_EQ(sequence->truncate(290), 290);
  EXPECT_EQ(sequence->truncate(100), 0);
  EXPECT_EQ(sequence->tokens().size(), 100u);
  // Drafts take back a few tokens at every length, also where a page has just left the window.
  sequence.reset();
  auto drafted = *bounded->new_sequence();
  int at = 0;
  for (int length = 20; length <= 300; length++) {
    for (; at < length; at++)
      ASSERT_TRUE(bounded->forward({{{drafted.get(), text(300)[size_t(at)], at, {}}}, 0}));
    at = drafted->truncate(length - 10);
    ASSERT_EQ(at, length - 10);
  }
}

TEST_F(Declared, RandomSchedulesWithAWindow) {
  RunOptions o = options(&kWindowed), one = o;
  o.sequences = 9;
  const auto many = load({}, o), alone = load({}, one);
  ASSERT_TRUE(many && alone) << failed_.message;
  expect_all_of_it(Schedule(*many, *alone, {.seed = 3, .steps = 400, .most_rows = 16}).run());
}

// Prompts in any parts, sequences in turns, forks and rewinding: the ops with a state, and experts that rows
// of one step share or do not.
TEST_F(Declared, RandomSchedulesWithRecurrentStateAndExperts) {
  RunOptions o = options(&kMixers), one = o;
  o.sequences = 9;
  const auto many = load(kMixersForm, o), alone = load(kMixersForm, one);
  ASSERT_TRUE(many && alone) << failed_.message;
  expect_all_of_it(Schedule(*many, *alone, {.seed = 5, .steps = 400, .most_rows = 16}).run());
}

TEST_F(Declared, AStateIsRewoundAndForkedByCheckpoints) {
  RunOptions o = options(&kRing), one = o;
  o.sequences = 9, one.batch = one.logit_rows = 1;
  const auto many = load({}, o), alone = load({}, one);
  ASSERT_TRUE(many && alone) << failed_.message;
  expect_all_of_it(Schedule(*many, *alone, {.seed = 4, .steps = 500, .most_rows = 1}).run());

  RunOptions far = one;
  far.context = 700, far.sequences = 2;
  const auto m = load({}, far);
  const Text t = text(700);
  auto s = *m->new_sequence();
  auto go = [&](Sequence& s, int to) {
    Numbers got;
    while (s.computed() < to) {
      const Batch b{{{&s, t[size_t(s.computed())], s.computed(), {.logits = true}}}, 0};
      auto out = m->forward(b);
      EXPECT_TRUE(out) << out.error().message;
      if (!out) break;
      got.assign(out->logits(0).begin(), out->logits(0).end());
    }
    return got;
  };
  const Numbers at_300 = go(*s, 300), at_690 = go(*s, 690);
  EXPECT_EQ(s->truncate(600), 512) << "a checkpoint is taken every 256 positions";
  EXPECT_EQ(s->tokens().size(), 600u);
  EXPECT_EQ(go(*s, 690), at_690);
  auto other = *s->fork();
  EXPECT_EQ(other->truncate(300), 256);
  EXPECT_EQ(go(*other, 300), at_300);
  s->checkpoint();
  EXPECT_EQ(go(*other, 690), at_690);
  go(*s, 695);
  EXPECT_EQ(s->truncate(690), 690) << "one was asked for there";
  EXPECT_EQ(s->truncate(20), 0);
  EXPECT_EQ(go(*s, 300), at_300);
}

}  // namespace
}  // namespace gimbal::test
