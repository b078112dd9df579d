// Batches of many sequences: each gets the bits that it has alone, whatever the others do; pages are shared,
// copied before they are written, and run out with an error that changes nothing.
#include "runtime/batch.h"

#include "support/engine.h"
#include "support/golden.h"
#include "support/schedules.h"

namespace gimbal::test {
namespace {

constexpr const char* kStories = "stories/stories260K-q8_0";

Engine open(const RunOptions& run, const std::string& device = "threads=1",
            const std::string& model = kStories) {
  EngineOptions o;
  o.device = device, o.run = run;
  auto e = open_engine(golden_dir() + "/" + model + ".gguf", o);
  if (e) return std::move(*e);
  ADD_FAILURE() << e.error().message;
  std::exit(1);
}

RunOptions options(int context, int sequences, DType cache = DType::F16) {
  RunOptions o;
  o.context = context, o.sequences = sequences, o.batch = 48, o.logit_rows = 5, o.cache_type = cache;
  return o;
}

// Steps of 16 tokens that all sequences can have in turns.
int steps_that_fit(Model& m) {
  const RunOptions& o = m.plan().options;
  std::vector<std::unique_ptr<Session>> all;
  for (int i = 0; i < o.sequences; i++) all.push_back(*Session::create(m));
  int steps = 0;
  while (steps < o.sequences * (o.context / 16) &&
         all[size_t(steps % o.sequences)]->advance(Text(16, 7), Session::Wanted::None, {}))
    steps++;
  return steps;
}

std::vector<unsigned> seeds(std::vector<unsigned> all) {
  if (fewer_cases()) all.resize(1);
  return all;
}

struct Setting {
  RunOptions run;
  std::string device = "threads=1", reference = "threads=1", model = kStories;
};

ScheduleCounts run(const Setting& s, const ScheduleOptions& schedule) {
  RunOptions one = s.run;
  one.sequences = 1, one.cache_positions = 0, one.batch = one.logit_rows = 64;
  Engine many = open(s.run, s.device, s.model), alone = open(one, s.reference, s.model);
  const int before = steps_that_fit(*many.model);
  const ScheduleCounts n = Schedule(*many.model, *alone.model, schedule).run();
  EXPECT_EQ(steps_that_fit(*many.model), before) << "pages were lost";
  return n;
}

TEST(Batch, RandomSchedulesGiveEachSequenceTheBitsItHasAlone) {
  int full = 0;
  for (unsigned seed : seeds({1, 2, 3, 4}))
    for (auto [cache, context] : {std::pair(DType::F16, 128), {DType::F32, 100}, {DType::BF16, 64}}) {
      if (fewer_cases() && cache != DType::BF16) continue;
      const ScheduleCounts n = run({options(context, 16, cache)}, {.seed = seed, .steps = 120});
      expect_all_of_it(n);
      EXPECT_EQ(n.exhausted, 0) << "there are pages for all";
      full += n.full;
    }
  EXPECT_GT(full, 0) << "no context was filled";
}

TEST(Batch, RandomSchedulesWithTooFewPages) {
  for (unsigned seed : seeds({11, 12, 13})) {
    RunOptions o = options(192, 16);
    o.cache_positions = 64 * 12;
    const ScheduleCounts n = run({o}, {.seed = seed, .steps = 200, .most_rows = 30});
    expect_all_of_it(n);
    EXPECT_GT(n.exhausted, 0);
  }
}

TEST(Batch, RandomSchedulesOnEveryInstructionSetWithQuantizedCaches) {
  for (const std::string& variant : cpu_variants().usable)
    for (DType cache : {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL}) {
      if (fewer_cases() && variant != cpu_variants().usable.back()) continue;
      SCOPED_TRACE(variant);
      expect_all_of_it(run({options(128, 16, cache), "threads=2\nvariant=" + variant,
                            "threads=1\nvariant=baseline", "quant/q-q6_k"},
                           {.seed = 21, .steps = 20}));
    }
}

// States that every position changes: scans of both kinds, delta nets and short convolutions, beside pages of
// attention and with experts.
TEST(Batch, RandomSchedulesOfRecurrentModels) {
  const Variants variants = cpu_variants();
  for (const std::string& model : recurrent_models()) {
    SCOPED_TRACE(model);
    const Setting s{options(128, 9), "threads=2\nvariant=" + variants.usable.back(),
                    "threads=1\nvariant=baseline", "more/arch/" + model};
    expect_all_of_it(run(s, {.seed = 31, .steps = 60, .most_rows = 24}));
  }
}

std::vector<float> logits_of(Model& m, Sequence& s, const Text& tokens) {
  Batch b;
  for (size_t i = 0; i < tokens.size(); i++)
    b.rows.push_back({&s, tokens[i], s.computed() + int(i), {.logits = i + 1 == tokens.size()}});
  auto out = m.forward(b);
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::vector<float>(out->logits(0).begin(), out->logits(0).end()) : std::vector<float>();
}

TEST(Batch, APageThatIsSharedIsCopiedBeforeItIsWritten) {
  RunOptions o = options(128, 4);
  o.cache_positions = 5 * 64;
  Engine e = open(o);
  Model& m = *e.model;
  const Text begin(40, 9), more(90, 11), other(24, 13);
  auto a = *m.new_sequence();
  logits_of(m, *a, begin);
  auto b = *a->fork(), c = *b->fork();
  // One page so far, and three that hold it. Then they diverge: a takes two more, b a copy, c keeps it.
  const auto of_b = logits_of(m, *b, other);
  Batch rest;
  for (int i = 0; i < 48; i++) rest.rows.push_back({c.get(), 1, 40 + i, {}});
  const auto of_a = logits_of(m, *a, Text(30, 11));
  logits_of(m, *a, Text(18, 11));
  auto no = m.forward(rest);  // the page that c has, and one more: four are taken, and one is left
  ASSERT_TRUE(no) << no.error().message;
  auto d = *m.new_sequence();
  auto full = m.forward({{{d.get(), 1, 0, {}}}, 0});
  ASSERT_FALSE(full) << "all five are in use";
  EXPECT_EQ(full.error().code, Code::OutOfMemory);
  EXPECT_NE(full.error().message.find("5 pages"), std::string::npos) << full.error().message;
  EXPECT_EQ(d->computed(), 0);
  c.reset();
  EXPECT_TRUE(m.forward({{{d.get(), 1, 0, {}}}, 0}));

  Engine alone = open(options(128, 1));
  auto s = *alone.model->new_sequence();
  logits_of(*alone.model, *s, begin);
  EXPECT_EQ(logits_of(*alone.model, *s, other), of_b);
  s->truncate(40);
  EXPECT_EQ(logits_of(*alone.model, *s, Text(30, 11)), of_a);
}

// Back to a checkpoint and on from there, a fork beside its origin, and both behind where they parted.
TEST(Batch, RecurrentModelsAreRewoundAndForked) {
  for (const std::string& model : recurrent_models()) {
    SCOPED_TRACE(model);
    Engine e = open(options(512, 2), "threads=2", "more/arch/" + model);
    auto text = [](int n, int from) {
      Text t;
      for (int i = 0; i < n; i++) t.push_back((i * 37 + from * 11) % 500);
      return t;
    };
    // The last logits behind the first `n` tokens of `t`, in steps of at most `step`.
    auto go = [&](Sequence& s, const Text& t, int n, int step) {
      std::vector<float> last;
      while (s.computed() < n) {
        const int rows = std::min(step, n - s.computed());
        last = logits_of(*e.model, s, Text(t.begin() + s.computed(), t.begin() + s.computed() + rows));
      }
      return last;
    };
    auto alone = [&](const Text& t, int n) { return go(**e.model->new_sequence(), t, n, 48); };
    const Text main = text(420, 1);
    Text other(main.begin(), main.begin() + 400);
    for (int32_t t : text(20, 2)) other.push_back(t);
    const std::vector<float> at_300 = alone(main, 300), at_420 = alone(main, 420), parted = alone(other, 420);
    ASSERT_NE(at_420, parted);

    auto s = *e.model->new_sequence();
    go(*s, main, 400, 32);
    auto fork = *s->fork();
    EXPECT_EQ(go(*fork, other, 420, 1), parted);
    EXPECT_EQ(go(*s, main, 420, 20), at_420) << "a fork changed it";
    EXPECT_EQ(s->truncate(299), kCheckpointEvery);
    EXPECT_EQ(go(*s, main, 300, 7), at_300);
    EXPECT_EQ(fork->truncate(410), kCheckpointEvery);
    EXPECT_EQ(go(*fork, other, 420, 48), parted);
    EXPECT_EQ(s->truncate(100), 0) << "no checkpoint lies that far back";
    EXPECT_EQ(go(*s, main, 420, 48), at_420);
  }
}

TEST(Batch, ContextsOfWholePagesAreFilledToTheLastPosition) {
  for (int context : {64, 128, 192})
    for (int piece : {1, 7, 48}) {
      Engine e = open(options(context, 2));
      std::vector<std::unique_ptr<Session>> both;
      for (int i = 0; i < 2; i++) both.push_back(*Session::create(*e.model));
      for (int at = 0; at < context; at += piece)
        for (auto& s : both) {
          auto ok = s->advance(Text(size_t(std::min(piece, context - at)), 5), Session::Wanted::None, {});
          ASSERT_TRUE(ok) << ok.error().message << " (context " << context << ", at " << at << ")";
        }
      for (auto& s : both) EXPECT_EQ(s->room(), 0);
    }
}

TEST(Batch, WhatIsNotRightIsRefusedAndChangesNothing) {
  Engine e = open(options(64, 2)), other = open(options(64, 1));
  Model& m = *e.model;
  auto s = *m.new_sequence(), stranger = *other.model->new_sequence();
  const auto want = logits_of(m, *s, Text(10, 3));
  s->truncate(9);
  struct Case {
    Batch batch;
    const char* says;
  };
  Batch many, wanted;
  for (int i = 0; i < 49; i++) many.rows.push_back({s.get(), 1, 9 + i, {}});
  for (int i = 0; i < 6; i++) wanted.rows.push_back({s.get(), 1, 9 + i, {.logits = true}});
  for (const Case& c :
       {Case{{}, "from 1 to 48 rows, not 0"},
        {many, "not 49"},
        {wanted, "6 rows of a batch request a result"},
        {{{{nullptr, 1, 0, {}}}, 0}, "no sequence of this model"},
        {{{{stranger.get(), 1, 0, {}}}, 0}, "no sequence of this model"},
        {{{{s.get(), 1, 8, {}}}, 0}, "position 8; its sequence's next one is 9"},
        {{{{s.get(), 1, 9, {}}, {s.get(), 1, 9, {}}}, 0}, "position 9; its sequence's next one is 10"},
        {{{{s.get(), 512, 9, {}}}, 0}, "token 512"},
        {{{{s.get(), -1, 9, {}}}, 0}, "token -1"},
        {{{{s.get(), 1, 9, {.top = true}}}, 0}, "first 0 logits"},
        {{{{s.get(), 1, 9, {.top = true}}}, 65}, "first 65 logits"}}) {
    auto no = m.forward(c.batch);
    ASSERT_FALSE(no) << c.says;
    EXPECT_EQ(no.error().code, Code::Usage);
    EXPECT_NE(no.error().message.find(c.says), std::string::npos) << no.error().message;
    EXPECT_EQ(s->computed(), 9);
  }
  EXPECT_EQ(logits_of(m, *s, {3}), want);
  logits_of(m, *s, Text(48, 3)), logits_of(m, *s, Text(6, 3));
  auto full = m.forward({{{s.get(), 1, 64, {}}}, 0});
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("context full"), std::string::npos) << full.error().message;
}

}  // namespace
}  // namespace gimbal::test
