// What the engine of the GPU backends promises besides right numbers, over any runtime: launches recorded
// once, nothing allocated or loaded after the first step of a program, one upload and one download a token,
// every op counted. Included by a test of each backend, which defines the class `EngineCounts`, a CountsTest.
#pragma once
#include <cstdio>

#include "base/format.h"
#include "gpu/models_checks.h"
#include "gpu/watched_runtime.h"
#include "runtime/generate.h"

namespace gimbal::test {
namespace {

TEST_F(EngineCounts, RecordsOnceAndMovesOnlyTheStepAndTheLogits) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  const std::vector<int32_t> prompt(20, 7);
  const int32_t token = 5;
  ASSERT_TRUE(session->advance(prompt, Session::Wanted::Last, kIgnore));
  ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
  EXPECT_EQ(watching->records, 2) << "one for each program";
  const int allocations = watching->allocations, loads = watching->loads, writes = watching->writes,
            reads = watching->reads;
  const gpu::Counters counted = engine->counters();
  for (int i = 0; i < 30; i++)
    ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
  EXPECT_EQ(watching->records, 2);
  EXPECT_EQ(watching->allocations, allocations);
  EXPECT_EQ(watching->loads, loads);
  EXPECT_EQ(watching->writes - writes, 30) << "the step's data, once a token";
  EXPECT_EQ(watching->reads - reads, 30) << "the logits, once a token";
  EXPECT_EQ(engine->counters().replays - counted.replays, 30u);
  EXPECT_EQ(engine->counters().uploads - counted.uploads, 30u);
  EXPECT_EQ(engine->counters().downloads - counted.downloads, 30u);
  EXPECT_EQ(engine->counters().downloaded_bytes - counted.downloaded_bytes, 30u * 512 * 4);
  EXPECT_EQ(engine->counters().allocations, counted.allocations);
  EXPECT_EQ(engine->counters().launches - counted.launches, 30 * watching->launches.size());
  // Lengths in one bucket share a recording, and each bucket has one of its own.
  for (int n : {17, 25, 32}) {
    session->rewind(0);
    ASSERT_TRUE(session->advance(std::vector<int32_t>(size_t(n), 9), Session::Wanted::Last, kIgnore));
    EXPECT_EQ(watching->records, 2) << n;
  }
  ASSERT_TRUE(session->advance(std::vector<int32_t>(13, 9), Session::Wanted::Last, kIgnore));
  EXPECT_EQ(watching->records, 3);
}

// Sampling that looks at a few logits gets no others, and one download a token; the tokens are those of all
// logits.
TEST_F(EngineCounts, MovesOnlyTheLeadingLogitsWhereSamplingNeedsNoOthers) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  struct {
    const char* what;
    int leading;  // logits that are asked for; 0: all
    uint64_t bytes;
    SamplerSettings settings;
  } tries[4] = {
      {"greedy", 1, 8, {}}, {"top-k 40", 40, 512, {}}, {"no top-k", 0, 2048, {}}, {"penalties", 0, 2048, {}}};
  tries[0].settings.greedy = true;
  tries[2].settings.top_k = 0;
  tries[3].settings.repeat_penalty = 1.1f;
  auto tokenizer = *Tokenizer::create(l->file->metadata());
  for (const auto& t : tries) {
    EXPECT_EQ(Sampler(t.settings).leading(), t.leading) << t.what;
    auto session = *Session::create(*l->model);
    GenerateSettings settings;
    settings.sampler = t.settings, settings.max_tokens = 12, settings.ignore_stop_tokens = true;
    gpu::Counters before;
    int tokens = 0;
    auto ok = generate(*session, *tokenizer, tokenizer->encode("Once upon"), settings,
                       [&](std::string_view, Token) {
                         if (++tokens == 2)
                           before = engine->counters();  // from here on everything was recorded
                         return true;
                       });
    ASSERT_TRUE(ok) << ok.error().message;
    const gpu::Counters& after = engine->counters();
    EXPECT_EQ(after.downloads - before.downloads, 10u) << t.what;
    EXPECT_EQ(after.downloaded_bytes - before.downloaded_bytes, 10 * t.bytes) << t.what;
    EXPECT_EQ(after.uploads - before.uploads, 10u) << t.what;
    EXPECT_EQ(after.recordings, before.recordings) << t.what;
    EXPECT_EQ(after.allocations, before.allocations) << t.what;
  }
}

// A device that gives little memory at once: weights and cache are made of pieces, none larger, and together
// no larger than what was planned, but for their alignment.
TEST_F(EngineCounts, CutsBuffersThatAreLargerThanAnAllocation) {
  auto logits = [&](Loaded& l) {
    auto session = *Session::create(*l.model);
    std::vector<float> all;
    for (int n : {40, 1, 2, 3, 7, 15, 31}) {  // a step in every bucket
      session->rewind(0);
      EXPECT_TRUE(session->advance(
          some_tokens(n), Session::Wanted::Last,
          [&](size_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); }));
    }
    return all;
  };
  auto whole = load("", 512);
  ASSERT_TRUE(whole) << whole.error().message;
  const std::vector<float> want = logits(*whole);
  const int few = watching->allocations;
  const uint64_t used = whole->device->describe().memory_total - whole->device->describe().memory_free;
  for (uint64_t most : {150016, 70144}) {
    auto l = load(format("max_allocation={}", most), 512);
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_GT(watching->allocations, few + 3) << most;
    EXPECT_LE(watching->largest, most);
    EXPECT_GT(watching->largest, most / 2);
    const gimbal_device_info now = l->device->describe();
    EXPECT_LE(now.memory_total - now.memory_free, used + 512 * uint64_t(watching->allocations)) << most;
    EXPECT_EQ(bits_differ(want, logits(*l)), "") << most;
  }
  // Less than a value that cannot be cut needs.
  auto none = load("max_allocation=4096", 512);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Unsupported);
  EXPECT_NE(none.error().message.find("4096"), std::string::npos) << none.error().message;
  EXPECT_FALSE(load("max_allocation=4095"));
}

TEST_F(EngineCounts, LaunchesThatDoNotMeetNeedNotWait) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  const int32_t token = 5;
  ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
  ASSERT_FALSE(watching->launches.empty());
  EXPECT_TRUE(watching->launches[0].after_all) << "what was replayed before may still run";
  size_t waits = 0;
  for (const gpu::Launch& launch : watching->launches) waits += launch.after_all;
  std::printf("%zu launches a token, %zu waits\n", watching->launches.size(), waits);
  const auto layers = size_t(l->model->config().layers);
  EXPECT_GE(watching->launches.size() - waits, 4 * layers)
      << "k and v behind q, their cache writes, up behind gate";
}

TEST_F(EngineCounts, ReleasesWhatItTookAndForgetsRecordingsOfBuffersThatAreGone) {
  {
    auto l = load();
    ASSERT_TRUE(l) << l.error().message;
    auto session = *Session::create(*l->model);
    const int32_t token = 5;
    ASSERT_TRUE(session->advance(std::span(&token, 1), Session::Wanted::Last, kIgnore));
    session.reset();
    l->model.reset();
    EXPECT_EQ(watching->discards, watching->records);
    EXPECT_EQ(watching->allocations - watching->releases, 2)
        << "the step's numbers and the buffer for nothing stay";
  }
}

TEST_F(EngineCounts, EveryOpOfThePlanOnceAStep) {
  auto l = load();
  ASSERT_TRUE(l) << l.error().message;
  auto session = *Session::create(*l->model);
  std::map<int, uint64_t> steps;  // by rows
  for (int rows : {32, 1, 1, 1, 16}) {
    const std::vector<int32_t> tokens(size_t(rows), 7);
    ASSERT_TRUE(session->advance(tokens, Session::Wanted::Last, kIgnore));
    steps[rows]++;
  }
  uint64_t ops = 0, runs = 0, products = 0;
  for (const Bucket& b : l->model->plan().last().buckets)
    if (const auto n = steps.find(b.rows); n != steps.end())
      ops += n->second * b.program.ops.size(), steps.erase(n);
  EXPECT_TRUE(steps.empty()) << "a step of " << steps.begin()->first << " rows has no program of its own";
  for (const ReceiptLine& r : l->model->receipt()) {
    EXPECT_EQ(r.not_counted, "") << r.op;
    EXPECT_EQ(r.device, "watched:0") << r.op;
    EXPECT_EQ(r.kernel.find("watched."), 0u) << r.kernel;
    runs += r.runs;
    if (r.op == "mat_mul") products += r.runs;
  }
  EXPECT_EQ(runs, ops);
  const auto layers = uint64_t(l->model->config().layers);
  EXPECT_EQ(products, 5 * (7 * layers + 1)) << "seven a layer, and the head, in each step";
  std::printf("%llu ops and %llu launches in 5 steps\n", (unsigned long long)runs,
              (unsigned long long)engine->counters().launches);
  EXPECT_GE(engine->counters().launches, products);
}

}  // namespace
}  // namespace gimbal::test
