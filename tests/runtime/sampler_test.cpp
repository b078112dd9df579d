// Draws, seeds, ties, penalties and bias of the sampler, and that broken numbers never become a token. What
// the filters leave is compared in sampler_filters_test.cpp.
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/sampler_reference.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Sampler, TiesGoToTheLowerId) {
  std::vector<float> equal(100, 1.5f);
  SamplerSettings s = plain();
  s.top_k = 3;
  EXPECT_EQ(actual(s, equal, {}), (TokenDistribution{{0, 1 / 3.0}, {1, 1 / 3.0}, {2, 1 / 3.0}}));
  s = plain();
  s.top_p = 0.045f;
  EXPECT_EQ(actual(s, equal, {}).size(), 5u);
  EXPECT_EQ(actual(s, equal, {}).rbegin()->first, 4);
  s = plain();
  s.typical_p = 0.045f;
  EXPECT_EQ(actual(s, equal, {}).rbegin()->first, 4);
  s = plain();
  s.min_p = 1;
  EXPECT_EQ(actual(s, equal, {}).size(), 100u);
  s.greedy = true;
  EXPECT_EQ(*Sampler(s).pick(equal, {}), 0);
  equal[70] = equal[40] = 2;
  EXPECT_EQ(*Sampler(s).pick(equal, {}), 40);
}

TEST(Sampler, GreedyTakesTheLargestLogitAfterPenalties) {
  std::vector<float> logits = {-3, 2, 5, 4.9f, -1};
  SamplerSettings greedy, cold;
  greedy.greedy = true;
  cold.temperature = 0;
  for (SamplerSettings s : {greedy, cold}) {
    Sampler sampler(s);
    for (int i = 0; i < 5; i++) EXPECT_EQ(*sampler.pick(logits, {}), 2);
    EXPECT_EQ(*sampler.pick(std::vector<float>{-kInfinity, -5, -kInfinity}, {}), 1);
    s.repeat_penalty = 1.1f;
    EXPECT_EQ(*Sampler(s).pick(logits, std::vector<int32_t>{2}), 3);
    EXPECT_EQ(*Sampler(s).pick(logits, std::vector<int32_t>{2, 3}), 2);
    s.logit_bias = {{0, 100.0f}};
    EXPECT_EQ(*Sampler(s).pick(logits, std::vector<int32_t>{2}), 0);
    EXPECT_EQ(actual(s, logits, {}), (TokenDistribution{{0, 1.0}}));
  }
}

// Worked out by hand: logits 2, -2, 1, 1 over the history 9 1 0 0 (9 and -1 are no tokens).
TEST(Sampler, PenaltiesByHand) {
  std::vector<float> logits = {2, -2, 1, 1};
  SamplerSettings s = plain();
  s.repeat_penalty = 2, s.frequency_penalty = 0.25f, s.presence_penalty = 0.5f;
  auto check = [&](std::vector<int32_t> history, std::vector<double> want) {
    TokenDistribution adjusted;
    for (int i = 0; i < 4; i++) adjusted[i] = want[i];
    TokenDistribution p = softmax(adjusted, 1), got = actual(s, logits, history);
    for (int i = 0; i < 4; i++) EXPECT_NEAR(got[i], p[i], 1e-12) << i;
  };
  check({9, 1, 0, 0, -1}, {2 / 2.0 - 2 * 0.25 - 0.5, -2 * 2.0 - 0.25 - 0.5, 1, 1});
  s.penalty_window = 2;
  check({2, 1, 0, 0}, {0, -2, 1, 1});
  s.penalty_window = 0;
  check({2, 1, 0, 0}, {2, -2, 1, 1});
  s.penalty_window = -1;
  std::vector<int32_t> old(1000, 3);
  old[0] = 2;
  check(old, {2, -2, 1 / 2.0 - 0.25 - 0.5, 1 / 2.0 - 999 * 0.25 - 0.5});
}

TEST(Sampler, BiasForbidsAndForces) {
  std::vector<float> logits = {1, 2, 3, -kInfinity};
  SamplerSettings s = plain();
  s.logit_bias = {{2, -kInfinity}};
  EXPECT_EQ(actual(s, logits, {}).count(2), 0u);
  EXPECT_EQ(actual(s, logits, {}).size(), 2u);
  s.logit_bias = {{0, 1e30f}};
  EXPECT_EQ(actual(s, logits, {})[0], 1);
  s.logit_bias = {{0, 3e38f}, {0, 3e38f}, {1, -3e38f}, {1, -3e38f}};  // must not become infinities
  EXPECT_EQ(actual(s, logits, {})[0], 1);
  s.logit_bias = {{3, 1000}};  // what the model holds impossible stays so
  EXPECT_EQ(actual(s, logits, {}).count(3), 0u);

  for (bool greedy : {false, true}) {
    s.greedy = greedy;
    s.logit_bias = {{0, -kInfinity}, {1, -kInfinity}, {2, -kInfinity}};
    auto r = Sampler(s).pick(logits, {});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, Code::Usage);
    EXPECT_NE(r.error().message.find("logit_bias"), std::string::npos);
    s.logit_bias = {{4, 1}};
    r = Sampler(s).pick(logits, {});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, Code::Usage);
    EXPECT_NE(r.error().message.find("token id 4"), std::string::npos) << r.error().message;
  }
}

TEST(Sampler, OneCandidateIsAlwaysDrawn) {
  SamplerSettings s;
  Sampler sampler(s);
  for (int i = 0; i < 100; i++) {
    EXPECT_EQ(*sampler.pick(std::vector<float>{-kInfinity, -300, -kInfinity}, {}), 1);
    EXPECT_EQ(*sampler.pick(std::vector<float>{0.0f}, {}), 0);
  }
}

TEST(Sampler, ExtremeLogitsAreFine) {
  SamplerSettings s;
  s.typical_p = 0.9f;
  s.temperature = 1e-40f;
  float max = std::numeric_limits<float>::max();
  EXPECT_EQ(*Sampler(s).pick(std::vector<float>{-max, max, 0, max / 2}, {}), 1);
  s.temperature = max;
  s.top_k = 0, s.top_p = 1, s.min_p = 0, s.typical_p = 1;
  TokenDistribution p = actual(s, {-max, max, 0}, {});
  EXPECT_NEAR(p[1] / p[0], std::exp(2), 1e-9);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  auto logits = random_logits(16, 3, 1);
  SamplerSettings s = plain();
  s.seed = 20240607;
  TokenDistribution p = expected(s, logits, {});
  Sampler sampler(s);
  constexpr int kDraws = 200000;
  std::vector<int> counts(16);
  for (int i = 0; i < kDraws; i++) counts[*sampler.pick(logits, {})]++;
  double chi_square = 0;
  for (int i = 0; i < 16; i++) chi_square += std::pow(counts[i] - kDraws * p[i], 2) / (kDraws * p[i]);
  // 15 degrees of freedom: 0.1% of correct samplers lie above 37.7, 0.1% below 3.5.
  EXPECT_LT(chi_square, 37.7);
  EXPECT_GT(chi_square, 3.5);
  RecordProperty("chi_square", std::to_string(chi_square));

  // The same after filters that reorder the candidates.
  s = SamplerSettings{};
  s.typical_p = 0.9f, s.seed = 5;
  Sampler filtered(s);
  p = expected(s, logits, {});
  ASSERT_GT(p.size(), 4u);
  std::fill(counts.begin(), counts.end(), 0);
  for (int i = 0; i < kDraws; i++) counts[*filtered.pick(logits, {})]++;
  for (int i = 0; i < 16; i++) {
    double mean = kDraws * (p.count(i) ? p[i] : 0.0);
    EXPECT_LE(std::fabs(counts[i] - mean), 4 * std::sqrt(mean)) << i;
  }
}

std::vector<int32_t> sequence(const SamplerSettings& s, int n) {
  auto logits = random_logits(300, 11, 2);
  Sampler sampler(s);
  std::vector<int32_t> history;
  for (int i = 0; i < n; i++) {
    std::rotate(logits.begin(), logits.begin() + 7, logits.end());
    history.push_back(*sampler.pick(logits, history));
  }
  return history;
}

TEST(Sampler, TheSeedDecidesTheTokens) {
  SamplerSettings s;
  s.seed = 1;
  s.repeat_penalty = 1.1f;
  auto one = sequence(s, 200);
  EXPECT_EQ(sequence(s, 200), one);
  s.seed = 2;
  EXPECT_NE(sequence(s, 200), one);
  s.seed = 1 + (uint64_t(1) << 63);  // all 64 bits count
  EXPECT_NE(sequence(s, 200), one);
}

// If this changes, the same seed no longer tells the same story: with another release, or on another machine.
TEST(Sampler, TheTokensOfASeedArePinned) {
  SamplerSettings s;
  s.seed = 42;
  EXPECT_EQ(sequence(s, 12),
            (std::vector<int32_t>{228, 274, 203, 108, 192, 181, 116, 154, 160, 216, 147, 1}));
}

TEST(Sampler, LookingAtCandidatesDrawsNothing) {
  auto logits = random_logits(300, 12);
  SamplerSettings s;
  s.seed = 9;
  Sampler a(s), b(s);
  for (int i = 0; i < 50; i++) {
    ASSERT_TRUE(b.candidates(logits, {}));
    EXPECT_EQ(*a.pick(logits, {}), *b.pick(logits, {}));
  }
}

TEST(Sampler, BrokenNumbersAreAnErrorNeverAToken) {
  SamplerSettings sampled, greedy;
  greedy.greedy = true;
  for (const SamplerSettings& s : {sampled, greedy}) {
    for (auto [bad, word] : {std::pair(kNaN, "NaN"), {-kNaN, "NaN"}, {kInfinity, "+infinity"}}) {
      for (size_t where : {size_t(0), size_t(17), size_t(511)}) {
        auto logits = random_logits(512, 1);
        logits[where] = bad;
        auto r = Sampler(s).pick(logits, {});
        ASSERT_FALSE(r);
        EXPECT_EQ(r.error().code, Code::Malformed);
        EXPECT_NE(r.error().message.find(word), std::string::npos) << r.error().message;
        EXPECT_NE(r.error().message.find("token id " + std::to_string(where)), std::string::npos)
            << r.error().message;
        EXPECT_NE(r.error().message.find("weights in this file are damaged"), std::string::npos)
            << r.error().message;
        EXPECT_FALSE(r.error().remedy.empty());
        EXPECT_FALSE(Sampler(s).candidates(logits, {}));
      }
    }
    auto none = Sampler(s).pick(std::vector<float>(8, -kInfinity), {});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::Malformed);
    EXPECT_NE(none.error().message.find("-infinity"), std::string::npos);
    ASSERT_FALSE(Sampler(s).pick({}, {}));
    EXPECT_EQ(Sampler(s).pick({}, {}).error().code, Code::Failed);

    // A bias that forbids the broken token must not hide it.
    SamplerSettings hidden = s;
    hidden.logit_bias = {{3, -kInfinity}};
    auto logits = random_logits(8, 1);
    logits[3] = kNaN;
    EXPECT_FALSE(Sampler(hidden).pick(logits, {}));
  }
}

TEST(Sampler, ABiasOfATokenThatDoesNotExistIsRefused) {
  SamplerSettings s = plain();
  s.logit_bias = {{2, 1.f}};
  const auto token = Sampler(s).pick(std::vector<float>{1, 2}, {});
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().message,
            "'logit_bias' names token id 2, but the model's vocabulary has only 2 tokens");
  EXPECT_STREQ(token.error().reason, reason::kOutOfRange);
  EXPECT_STREQ(token.error().field, "logit_bias");
  EXPECT_EQ(token.error().value, "2");
  EXPECT_EQ(token.error().limit, "0 to 1");
}

TEST(Sampler, SettingsOutOfRangeAreRefusedByName) {
  EXPECT_TRUE(validate(SamplerSettings{}));
  EXPECT_TRUE(validate(plain()));
  auto refuse = [](auto member, auto value, const std::string& field) {
    SamplerSettings s;
    s.*member = value;
    Status ok = validate(s);
    ASSERT_FALSE(ok) << field;
    EXPECT_EQ(ok.error().code, Code::Usage);
    EXPECT_STREQ(ok.error().reason, reason::kOutOfRange);
    EXPECT_NE(field.find(ok.error().field), std::string::npos) << ok.error().field;
    EXPECT_NE(ok.error().message.find(field), std::string::npos) << ok.error().message;
    auto token = Sampler(s).pick(std::vector<float>{1, 2}, {});
    ASSERT_FALSE(token) << field;
    EXPECT_EQ(token.error().message, ok.error().message);
  };
  using S = SamplerSettings;
  for (float bad : {kNaN, kInfinity, -kInfinity, -0.1f}) {
    refuse(&S::temperature, bad, "temperature");
    refuse(&S::top_p, bad, "top_p");
    refuse(&S::min_p, bad, "min_p");
    refuse(&S::typical_p, bad, "typical_p");
    refuse(&S::repeat_penalty, bad, "repeat_penalty");
    if (bad == -0.1f) continue;
    refuse(&S::frequency_penalty, bad, "frequency_penalty");
    refuse(&S::presence_penalty, bad, "presence_penalty");
  }
  refuse(&S::top_p, 1.01f, "'top_p' is 1.01, but must be from 0 to 1");
  refuse(&S::min_p, 1.01f, "min_p");
  refuse(&S::typical_p, 1.01f, "typical_p");
  refuse(&S::repeat_penalty, 0.0f, "repeat_penalty");
  refuse(&S::top_k, -1, "top_k");
  refuse(&S::penalty_window, -2, "penalty_window");
  using Bias = std::vector<std::pair<int32_t, float>>;
  refuse(&S::logit_bias, Bias{{-1, 1.0f}}, "logit_bias");
  refuse(&S::logit_bias, Bias{{1, kInfinity}}, "logit_bias");
  refuse(&S::logit_bias, Bias{{1, kNaN}}, "logit_bias");
  SamplerSettings forbid;
  forbid.logit_bias = {{1, -kInfinity}};
  EXPECT_TRUE(validate(forbid));
}

// The logits in falling order, equal ones by rising id, as a device gives them.
struct Sorted {
  std::vector<float> logits, ids;
  Sorted(const std::vector<float>& all, int k) {
    std::vector<int> order(all.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = int(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return all[size_t(a)] > all[size_t(b)]; });
    for (int i = 0; i < k; i++) {
      const bool there = size_t(i) < order.size();
      logits.push_back(there ? all[size_t(order[size_t(i)])] : -kInfinity);
      ids.push_back(there ? float(order[size_t(i)]) : -1);
    }
  }
};

TEST(Sampler, DrawsTheSameFromTheLeadingLogits) {
  Random random(3);
  int different = 0;
  for (int n : {3, 40, 5000})
    for (int k : {1, 7, 40, 64})
      for (int way = 0; way < 5; way++) {
        SamplerSettings s = plain();
        s.top_k = k, s.seed = uint64_t(n + k + way);
        if (way == 1) s.greedy = true;
        if (way == 2) s.top_p = 0.8f, s.min_p = 0.1f, s.temperature = 0.7f;
        if (way == 3) s.typical_p = 0.6f;
        if (way == 4) s.temperature = 0;
        Sampler all(s), few(s);
        ASSERT_EQ(few.leading(), way == 1 || way == 4 ? 1 : k);
        for (int draw = 0; draw < 20; draw++) {
          std::vector<float> logits;
          for (int i = 0; i < n; i++) {
            const double u = random.uniform();  // many ties, zeros of both signs, some that are impossible
            logits.push_back(u < 0.2   ? -kInfinity
                             : u < 0.3 ? -0.f
                             : u < 0.4 ? 0.f
                                       : std::floor(float(u) * 30) / 8);
          }
          if (logits[0] == -kInfinity) logits[0] = 1;  // one at least is possible
          const Sorted leading(logits, few.leading());
          auto got = few.pick_top(leading.logits, leading.ids);
          auto want = all.pick(logits, {});
          ASSERT_TRUE(got && *got && want);
          ASSERT_EQ(**got, *want) << n << " logits, top-k " << k << ", way " << way << ", draw " << draw;
          different += *want != int(leading.ids[0]);
        }
      }
  EXPECT_GT(different, 100) << "of 1200 draws, many are not the first";
}

TEST(Sampler, LeavesToAllLogitsWhatTheLeadingOnesCannotTell) {
  SamplerSettings s;
  EXPECT_EQ(Sampler(s).leading(), 40);
  s.top_k = 0;
  EXPECT_EQ(Sampler(s).leading(), 0);
  for (float SamplerSettings::*penalty :
       {&SamplerSettings::repeat_penalty, &SamplerSettings::frequency_penalty,
        &SamplerSettings::presence_penalty}) {
    SamplerSettings p;
    p.greedy = true;
    EXPECT_EQ(Sampler(p).leading(), 1);
    p.*penalty = 1.5f;
    EXPECT_EQ(Sampler(p).leading(), 0);
  }
  // Both are computed from all logits, whatever top-k keeps of them.
  SamplerSettings sigma, mirostat;
  sigma.top_n_sigma = 1, mirostat.mirostat = 2;
  EXPECT_EQ(Sampler(sigma).leading(), 0);
  EXPECT_EQ(Sampler(mirostat).leading(), 0);
  SamplerSettings biased;
  biased.logit_bias = {{3, 1.f}};
  EXPECT_EQ(Sampler(biased).leading(), 0);
  // Where there is no token, or no number: pick() has the words for it, and nothing was drawn.
  Sampler one{SamplerSettings()}, other{SamplerSettings()};
  const std::vector<float> ids = {5, 2}, good = {1, 1};
  for (float bad : {kNaN, kInfinity, -kInfinity}) {
    auto none = one.pick_top(std::vector<float>{bad, -kInfinity}, ids);
    ASSERT_TRUE(none);
    EXPECT_FALSE(*none);
  }
  for (int i = 0; i < 20; i++) EXPECT_EQ(**one.pick_top(good, ids), **other.pick_top(good, ids));
  s.temperature = -1;
  EXPECT_FALSE(Sampler(s).pick_top(good, ids)) << "settings that are refused";
}

}  // namespace
}  // namespace gimbal
