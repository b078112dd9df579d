// LoRA adapters by text: the rows of one batch use different ones, and each has the bits that it has alone,
// in a model that was loaded with its adapters only.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "model/arch.h"
#include "model/lora.h"
#include "runtime/session.h"
#include "support/adapters.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

using Scales = std::vector<float>;

RunOptions options() {
  RunOptions o;
  o.context = 64, o.batch = 32, o.logit_rows = 32, o.sequences = 8, o.cache_type = DType::F32;
  return o;
}

Device& cpu() {
  static const auto one = open_one("cpu", 0, "threads=2");
  return *one;
}

std::unique_ptr<Model> load(const std::string& path, const std::vector<Lora>& lora, size_t devices = 1) {
  ModelSource file = open_file(path);
  for (const Lora& l : lora) {
    auto ok = add_lora(file, l);
    EXPECT_TRUE(ok) << ok.error().message;
  }
  const int layers = configure(file)->layers;
  std::vector<Placement> where = {{&cpu(), layers, ""}};
  if (devices == 2) where = {{&cpu(), layers / 2, ""}, {&cpu(), layers - layers / 2, ""}};
  auto m = load_placed(file, where, options());
  EXPECT_TRUE(m) << m.error().message;
  return m ? std::move(*m) : nullptr;
}

std::vector<float> alone(Model& m, const std::vector<int32_t>& tokens, const Scales& scales,
                         size_t split = 0) {
  auto s = *Session::create(m);
  EXPECT_TRUE(s->adapt(scales));
  std::vector<float> all;
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = split ? std::min(split, tokens.size() - at) : tokens.size();
    auto ok =
        s->advance(std::span(tokens).subspan(at, n), Session::Wanted::All,
                   [&](size_t, std::span<const float> r) { all.insert(all.end(), r.begin(), r.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    at += n;
  }
  return all;
}

// The texts in one sequence each, all together: in each step up to `rows` rows of each, in turns.
std::vector<std::vector<float>> together(Model& m, const std::vector<std::vector<int32_t>>& texts,
                                         const std::vector<Scales>& scales, size_t rows) {
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (const Scales& s : scales) {
    sequences.push_back(std::move(*m.new_sequence()));
    EXPECT_TRUE(sequences.back()->adapt(s));
  }
  std::vector<std::vector<float>> all(texts.size());
  for (bool more = true; more;) {
    Batch batch;
    std::vector<size_t> of;
    for (size_t r = 0; r < rows; r++)
      for (size_t t = 0; t < texts.size(); t++) {
        const size_t at = size_t(sequences[t]->computed()) + r;
        if (at >= texts[t].size()) continue;
        batch.rows.push_back({sequences[t].get(), texts[t][at], int32_t(at), {.logits = true}});
        of.push_back(t);
      }
    more = !batch.rows.empty();
    if (!more) break;
    auto out = m.forward(batch);
    EXPECT_TRUE(out) << out.error().message;
    if (!out) break;
    for (size_t k = 0; k < of.size(); k++)
      all[of[k]].insert(all[of[k]].end(), out->logits(k).begin(), out->logits(k).end());
  }
  return all;
}

// Plain; experts; parts of a matrix with recurrent states.
TEST(Adapters, RowsOfABatchUseDifferentOnes) {
  for (const char* name : {"arch/llama-gqa", "more/arch/lfm2moe", "more/arch/mamba2"}) {
    SCOPED_TRACE(name);
    const std::string path = golden_dir() + "/" + name + ".gguf";
    const Adapted a = make_adapter(path), b = make_adapter(path, 8);
    const auto many = load(path, {{a.adapter, kAdapterScale}, {b.adapter, 0}});
    // What they are alone: models that were loaded with these adapters, or with none.
    const auto none = load(path, {}), only_a = load(path, {{a.adapter, kAdapterScale}}),
               only_b = load(path, {{b.adapter, kAdapterScale}}),
               both = load(path, {{a.adapter, 0.5f}, {b.adapter, -1.25f}});
    const std::vector<Scales> scales = {{0, 0},         {},     {0, kAdapterScale},
                                        {0.5f, -1.25f}, {0, 0}, {kAdapterScale, 0}};
    Model* const models[] = {none.get(), only_a.get(), only_b.get(), both.get(), none.get(), only_a.get()};
    std::vector<std::vector<int32_t>> texts;
    std::vector<std::vector<float>> want;
    for (size_t t = 0; t < scales.size(); t++) {
      const auto tokens = any_tokens(12 + int(t % 3), std::min(500, many->config().vocabulary));
      texts.push_back(tokens);
      want.push_back(alone(*models[t], tokens, {}));
      EXPECT_EQ(bits_differ(alone(*many, tokens, scales[t]), want[t]), "") << "text " << t << " alone";
      EXPECT_EQ(bits_differ(alone(*many, tokens, scales[t], 1), want[t]), "") << "text " << t << " by tokens";
    }
    for (size_t rows : {1, 3, 5}) {
      const auto got = together(*many, texts, scales, rows);
      for (size_t t = 0; t < texts.size(); t++)
        EXPECT_EQ(bits_differ(got[t], want[t]), "") << "text " << t << ", " << rows << " rows a step";
    }
    // The references: an adapter added to the weights in double precision.
    for (const auto& [adapted, of] : {std::pair(&a, &only_a), std::pair(&b, &only_b)}) {
      const auto merged = load(adapted->merged, {});
      const auto tokens = any_tokens(14, std::min(500, many->config().vocabulary));
      const auto reference = alone(*merged, tokens, {});
      EXPECT_LT(farthest(alone(**of, tokens, {}), reference), 2e-3);
      EXPECT_GT(farthest(alone(*none, tokens, {}), reference), 0.1) << "the adapter does something";
    }
  }
}

// A text with an adapter whose products are no numbers does not touch its neighbours.
TEST(Adapters, ARowWithoutNumbersStaysAlone) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  const Adapted bad = make_adapter(path, 9, 1e38f), good = make_adapter(path);
  const auto many = load(path, {{bad.adapter, 0}, {good.adapter, 0}});
  const auto none = load(path, {});
  const auto tokens = any_tokens(9);
  const auto got = together(*many, {tokens, tokens, tokens}, {{3e38f, 1}, {}, {0, 1}}, 2);
  EXPECT_FALSE(std::isfinite(got[0].back()));
  EXPECT_EQ(bits_differ(got[1], alone(*none, tokens, {})), "");
  EXPECT_EQ(bits_differ(got[2], alone(*many, tokens, {0, 1})), "");
}

// Each stage has the weights of its adapters in every program, also in those that use none of them.
TEST(Adapters, OverTwoDevices) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  const Adapted a = make_adapter(path), b = make_adapter(path, 8);
  const std::vector<Lora> lora = {{a.adapter, 0}, {b.adapter, kAdapterScale}};
  const auto one = load(path, lora), two = load(path, lora, 2);
  ASSERT_EQ(two->plan().stages.size(), 2u);
  EXPECT_EQ(one->plan().stages[0].memory.weights,
            two->plan().stages[0].memory.weights + two->plan().stages[1].memory.weights);
  const auto tokens = any_tokens(12);
  const std::vector<Scales> scales = {{0, 0}, {1, 0}, {}, {-1, 2}};
  const auto got = together(*two, std::vector(4, tokens), scales, 3);
  for (size_t t = 0; t < scales.size(); t++)
    EXPECT_EQ(bits_differ(got[t], alone(*one, tokens, scales[t])), "") << t;
}

// A batch runs in the smallest program that has its adapters: one without costs what a model without costs.
TEST(Adapters, ProgramsBySet) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  const Adapted a = make_adapter(path), b = make_adapter(path, 8), c = make_adapter(path, 9);
  const auto none = load(path, {}), many = load(path, {{a.adapter, 0}, {b.adapter, 1}, {c.adapter, 0}});
  const ModelPlan &plan = many->plan(), &plain = none->plan();
  auto ops = [](const ModelPlan& p, AdapterSet set, int rows) {
    const Bucket& bucket = p.stages[0].buckets[p.bucket_for(rows, set)];
    EXPECT_GE(bucket.rows, rows);
    return bucket.program.ops.size();
  };
  for (int rows : {1, 2, 32}) {
    EXPECT_EQ(ops(plan, 0, rows), ops(plain, 0, rows));
    const size_t single = ops(plan, 1, rows), all = ops(plan, 7, rows);
    EXPECT_GT(single, ops(plan, 0, rows));
    EXPECT_EQ(ops(plan, 2, rows), single);
    EXPECT_EQ(ops(plan, 4, rows), single);
    EXPECT_GT(all, single);
    EXPECT_EQ(ops(plan, 5, rows), all) << "two of three: the program of all";
  }
  // The plan shows what a text gets that names no scales, and counts the memory of the largest program.
  EXPECT_EQ(plan.stages[0].buckets[plan.distinct_buckets()[0]].adapters, AdapterSet(2));
  uint64_t most = 0;
  for (const Bucket& bucket : plan.stages[0].buckets)
    most = std::max(most, bucket.program.slot_bytes[size_t(Slot::Work)]);
  EXPECT_EQ(plan.stages[0].memory.activations, most);
  EXPECT_GT(plan.stages[0].memory.weights, plain.stages[0].memory.weights);
}

TEST(Adapters, ScalesOfASequence) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  const Adapted a = make_adapter(path);
  const auto m = load(path, {{a.adapter, 1}});
  auto s = *Session::create(*m);
  for (const Scales& wrong : {Scales{1, 2}, Scales{NAN}, Scales{INFINITY}}) {
    auto no = s->adapt(wrong);
    ASSERT_FALSE(no);
    EXPECT_EQ(no.error().code, Code::Usage);
    EXPECT_EQ(no.error().field, std::string("adapters"));
  }
  ASSERT_TRUE(s->adapt(Scales{0.5f}));
  const auto tokens = any_tokens(20);
  ASSERT_TRUE(s->advance(tokens, Session::Wanted::None, {}));
  EXPECT_TRUE(s->adapt(Scales{0.5f})) << "the same";
  EXPECT_FALSE(s->adapt(Scales{0.25f})) << "it holds tokens of other scales";
  EXPECT_EQ(s->keep_common(tokens), 19) << "a session's own text";
  // A copy and another device keep the scales.
  const auto other = load(path, {{a.adapter, 1}});
  auto copy = *s->fork();
  EXPECT_EQ(copy->inputs().adapters(), Scales{0.5f});
  ASSERT_TRUE(copy->move_to(*other));
  EXPECT_EQ(copy->inputs().adapters(), Scales{0.5f});
  std::vector<float> moved;
  ASSERT_TRUE(copy->advance(std::span(tokens).last(1), Session::Wanted::Last,
                            [&](size_t, std::span<const float> l) { moved.assign(l.begin(), l.end()); }));
  const auto want = alone(*m, tokens, {0.5f});
  EXPECT_EQ(bits_differ(moved, std::vector(want.end() - ptrdiff_t(moved.size()), want.end())), "");
  // A sequence that is empty again may change.
  s->rewind(0);
  EXPECT_TRUE(s->adapt({}));
  // Texts under other scales have no common prefix.
  const Inputs plain(tokens), adapted(tokens, {}, {0.5f}), same(tokens, {}, {0.5f});
  EXPECT_EQ(common_prefix(plain, adapted), 0u);
  EXPECT_EQ(common_prefix(same, adapted), 20u);
  EXPECT_EQ(common_prefix(InputView(adapted).subview(3), InputView(same).subview(3, 5)), 5u);
  // Without adapters there is nothing to scale.
  const auto none = load(path, {});
  EXPECT_FALSE((*Session::create(*none))->adapt(Scales{1}));
}

TEST(Adapters, AtMostSixteen) {
  const std::string path = golden_dir() + "/arch/llama-gqa.gguf";
  const Adapted a = make_adapter(path);
  ModelSource file = open_file(path);
  for (size_t i = 0; i < kMaxAdapters; i++) ASSERT_TRUE(add_lora(file, {a.adapter, 0}));
  auto no = add_lora(file, {a.adapter, 0});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::Usage);
  EXPECT_EQ(file.tensors().adapters().size(), kMaxAdapters);
  EXPECT_NE(file.tensors().adapters()[3].path.find("adapter"), std::string::npos);
  auto m = load_placed(file, {{&cpu(), configure(file)->layers, ""}}, options());
  ASSERT_TRUE(m) << m.error().message;
  Scales last(kMaxAdapters, 0);
  last.back() = 1;
  const auto tokens = any_tokens(5);
  EXPECT_EQ(bits_differ(alone(**m, tokens, last), alone(*load(path, {{a.adapter, 1}}), tokens, {})), "");
}

}  // namespace
}  // namespace gimbal::test
