// DRY, XTC, top-n-sigma, dynamic temperature, Mirostat and adaptive-p beside the formulas of their authors,
// computed plainly in double precision.
#include <cmath>

#include "runtime/sampler_reference.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

// Adjusted logits are floats, which the tolerance of DRY's says.
void expect_near(const TokenDistribution& got, const TokenDistribution& want, double tolerance = 1e-9) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [id, p] : want) {
    ASSERT_TRUE(got.contains(id)) << id;
    EXPECT_NEAR(got.at(id), p, tolerance) << id;
  }
}

TokenDistribution as_map(const std::vector<float>& logits) {
  TokenDistribution d;
  for (size_t i = 0; i < logits.size(); i++) d[int(i)] = logits[i];
  return d;
}

// p-e-w's description, by looking at every earlier place: how far back the text before it equals the end of
// the text.
std::vector<double> dry(const SamplerSettings& s, const std::vector<float>& logits,
                        const std::vector<int32_t>& history, const std::vector<int32_t>& breakers) {
  const size_t n =
      std::min(history.size(), s.dry_penalty_last_n < 0 ? SIZE_MAX : size_t(s.dry_penalty_last_n));
  const std::vector<int32_t> text(history.end() - long(n), history.end());
  std::map<int32_t, int> longest;
  for (size_t next = 1; next < n; next++) {
    int length = 0;
    while (size_t(length) < next && text[next - 1 - size_t(length)] == text[n - 1 - size_t(length)] &&
           std::find(breakers.begin(), breakers.end(), text[n - 1 - size_t(length)]) == breakers.end())
      length++;
    longest[text[next]] = std::max(longest[text[next]], length);
  }
  std::vector<double> out(logits.begin(), logits.end());
  for (const auto& [token, length] : longest)
    if (length >= s.dry_allowed_length)
      out[size_t(token)] -= s.dry_multiplier * std::pow(s.dry_base, length - s.dry_allowed_length);
  return out;
}

TEST(NewerSamplers, DryPenalizesWhatLengthensARepetition) {
  std::mt19937 random(4);
  int penalized = 0;
  for (int round = 0; round < 300; round++) {
    SamplerSettings s = plain();
    s.dry_multiplier = 0.8f, s.dry_base = 1.75f, s.dry_allowed_length = 1 + round % 4;
    if (round % 3 == 0) s.dry_penalty_last_n = 1 + int(random() % 30);
    std::vector<int32_t> history(2 + random() % 60);
    for (int32_t& t : history) t = int32_t(random() % 4);
    const auto logits = random_logits(6, unsigned(round));
    TokenDistribution want;
    const auto out = dry(s, logits, history, {});
    for (size_t i = 0; i < out.size(); i++) want[int(i)] = out[i], penalized += out[i] != double(logits[i]);
    expect_near(actual(s, logits, history), softmax(want, 1), 1e-6);
    if (HasFailure()) return;
  }
  EXPECT_GT(penalized, 100);
}

TEST(NewerSamplers, DryStopsAtBreakers) {
  constexpr const char* kVocabulary[] = {"tok512"};
  const auto vocabularies = reference_vocabularies(kVocabulary);
  ASSERT_EQ(vocabularies.size(), 1u);
  const Tokenizer* tokenizer = vocabularies[0].tokenizer.get();
  const auto one = [&](const char* text) { return tokenizer->encode(text, {.add_bos = false}).back(); };
  const int32_t a = one("a"), b = one("b"), dot = one(".");
  const std::vector<int32_t> history = {a, b, dot, a, b,
                                        a, b, dot, a, b};  // dot a b came, and a b, and dot a b
  const auto logits = random_logits(tokenizer->size(), 5);
  SamplerSettings s = plain();
  s.dry_multiplier = 2, s.dry_allowed_length = 2;
  for (const bool breaks : {false, true}) {
    s.dry_sequence_breakers = breaks ? std::vector<std::string>{"."} : std::vector<std::string>{};
    TokenDistribution want;
    const auto out = dry(s, logits, history, breaks ? std::vector<int32_t>{dot} : std::vector<int32_t>{});
    for (size_t i = 0; i < out.size(); i++) want[int(i)] = out[i];
    Sampler sampler(s, tokenizer);
    TokenDistribution got;
    const auto left = sampler.candidates(logits, history);
    ASSERT_TRUE(left);
    for (const Candidate& c : *left) got[c.id] = c.probability;
    expect_near(got, softmax(want, 1), 1e-6);
  }
}

TEST(NewerSamplers, XtcDropsAllTopChoicesButTheLast) {
  const auto logits = random_logits(40, 3, 1);
  const TokenDistribution p = softmax(as_map(logits), 1);
  for (const float threshold : {0.02f, 0.05f, 0.1f, 0.6f}) {
    SamplerSettings s = plain();
    s.xtc_probability = 1, s.xtc_threshold = threshold;
    int kept = -1, reach = 0;
    for (const auto& [id, q] : p)
      if (q >= threshold) reach++, kept = kept < 0 || q < p.at(kept) ? id : kept;
    TokenDistribution want;
    for (const auto& [id, q] : p)
      if (reach < 2 || q < threshold || id == kept) want[id] = logits[size_t(id)];
    expect_near(actual(s, logits, {}), softmax(want, 1));
  }
  // As often as its probability says.
  SamplerSettings s = plain();
  s.xtc_probability = 0.3f, s.xtc_threshold = 0.1f, s.seed = 8;
  Sampler sampler(s);
  const std::vector<float> two = {1, 0.99f};  // with XTC only the second is left
  int second = 0;
  for (int i = 0; i < 20000; i++) second += *sampler.pick(two, {});
  EXPECT_NEAR(second / 20000.0, 0.3 + 0.7 * softmax(as_map(two), 1)[1], 0.02);
}

TEST(NewerSamplers, TopNSigmaKeepsWhatIsNearTheLargest) {
  for (const float n : {0.3f, 1.0f, 2.0f}) {
    const auto logits = random_logits(500, 21);
    double mean = 0, deviation = 0, max = -INFINITY;
    for (float x : logits) mean += x / 500, max = std::max(max, double(x));
    for (float x : logits) deviation += (x - mean) * (x - mean) / 500;
    TokenDistribution want;
    for (size_t i = 0; i < logits.size(); i++)
      if (logits[i] >= max - n * std::sqrt(deviation)) want[int(i)] = logits[i];
    ASSERT_LT(want.size(), logits.size());
    SamplerSettings s = plain();
    s.top_n_sigma = n;
    expect_near(actual(s, logits, {}), softmax(want, 1));
  }
}

TEST(NewerSamplers, DynamicTemperatureFollowsTheEntropy) {
  for (const float spread : {0.1f, 1.0f, 5.0f})
    for (const float exponent : {0.5f, 1.0f, 2.0f}) {
      const auto logits = random_logits(50, 9, spread);
      SamplerSettings s = plain();
      s.temperature = 0.9f, s.dynatemp_range = 0.5f, s.dynatemp_exponent = exponent;
      double entropy = 0;
      for (const auto& [id, p] : softmax(as_map(logits), 1)) entropy -= p > 0 ? p * std::log(p) : 0;
      const double t = (0.9f - 0.5f) + 2 * 0.5f * std::pow(entropy / std::log(50), exponent);
      expect_near(actual(s, logits, {}), softmax(as_map(logits), t));
    }
}

// arXiv:2007.14966, with the estimate of Zipf's exponent in the first version, and without in the second.
TEST(NewerSamplers, MirostatHoldsTheSurprise) {
  for (const int version : {1, 2}) {
    SamplerSettings s = plain();
    s.mirostat = version, s.mirostat_tau = 3, s.mirostat_eta = 0.2f, s.seed = 5;
    Sampler sampler(s);
    double mu = 6, surprise = 0;
    for (int step = 0; step < 300; step++) {
      const auto logits = random_logits(400, unsigned(step), 1.5f);
      auto p = softmax(as_map(logits), 1);
      std::vector<std::pair<double, int>> order;
      for (const auto& [id, q] : p) order.push_back({-q, id});
      std::sort(order.begin(), order.end());
      size_t kept = 1;
      if (version == 2) {
        while (kept < order.size() && -std::log2(-order[kept].first) <= mu) kept++;
      } else {
        double tb = 0, tt = 0;
        for (size_t i = 0; i < 99; i++) {
          const double t = std::log(double(i + 2) / double(i + 1));
          tb += t * std::log(order[i].first / order[i + 1].first), tt += t * t;
        }
        const double z = tb / tt, e = z - 1;
        const double k = std::pow(e * std::pow(2, mu) / (1 - std::pow(400, -e)), 1 / z);
        kept = size_t(std::clamp(k, 1.0, 400.0));
      }
      TokenDistribution want;
      for (size_t i = 0; i < kept; i++) want[order[i].second] = logits[size_t(order[i].second)];
      want = softmax(want, 1);
      TokenDistribution got;
      const auto left = sampler.candidates(logits, {});
      ASSERT_TRUE(left);
      for (const Candidate& c : *left) got[c.id] = c.probability;
      expect_near(got, want);
      ASSERT_NEAR(sampler.memory(), mu, 1e-6);
      if (HasFailure()) return;
      const int32_t id = *sampler.pick(logits, {});
      const double observed = -std::log2(want.at(id));
      mu -= double(s.mirostat_eta) * (observed - s.mirostat_tau);
      if (step >= 100) surprise += observed / 200;
    }
    EXPECT_NEAR(surprise, 3, 0.3) << version;
  }
}

// Zipf's exponent of tokens of which only two can be drawn at all. By the formulas above it is
// t ln(p0 / p1) / t^2 = 1 / ln 2, where ln(p0 / p1) = 1; and k = 0.97, so that one token is kept.
TEST(NewerSamplers, MirostatIgnoresTokensWithoutProbability) {
  SamplerSettings s = plain();
  s.mirostat = 1, s.mirostat_tau = 0.5f, s.mirostat_eta = 0.1f;
  std::vector<float> logits(400, -10000.0f);
  logits[7] = 1, logits[3] = 0;
  const double z = 1 / std::log(2.0), e = z - 1,
               k = std::pow(e * std::pow(2.0, 2 * 0.5) / (1 - std::pow(400.0, -e)), 1 / z);
  ASSERT_LT(k, 1);
  expect_near(actual(s, logits, {}), {{7, 1.0}});
}

TEST(NewerSamplers, AdaptiveDrawsNearItsTarget) {
  SamplerSettings s = plain();
  s.adaptive_target = 0.3f, s.adaptive_decay = 0.8f, s.seed = 6;
  Sampler sampler(s);
  double average = 0.3f;
  for (int step = 0; step < 300; step++) {
    const auto logits = random_logits(30, unsigned(step), 0.8f);
    const auto p = softmax(as_map(logits), 1);
    const double target = std::clamp(2 * double(s.adaptive_target) - average, 0.0, 1.0);
    TokenDistribution moved;
    for (const auto& [id, q] : p) {
      const double d = std::abs(q - target) / 0.3;
      moved[id] = 5 - 10 * d * d / (1 + d);
    }
    TokenDistribution got;
    const auto left = sampler.candidates(logits, {});
    ASSERT_TRUE(left);
    for (const Candidate& c : *left) got[c.id] = c.probability;
    expect_near(got, softmax(moved, 1));
    ASSERT_NEAR(sampler.memory(), average, 1e-6);
    if (HasFailure()) return;
    average =
        double(s.adaptive_decay) * average + (1 - double(s.adaptive_decay)) * p.at(*sampler.pick(logits, {}));
  }
}

// Another sampler that gets the number behind a token continues as the first one does.
TEST(NewerSamplers, ContinueFromWhatTheyRemember) {
  SamplerSettings mirostat = plain(), adaptive = plain();
  mirostat.mirostat = 2, mirostat.seed = 3;
  adaptive.adaptive_target = 0.2f, adaptive.xtc_probability = 0.5f, adaptive.seed = 4;
  for (const SamplerSettings& s : {mirostat, adaptive}) {
    Sampler first(s);
    for (unsigned i = 0; i < 20; i++) ASSERT_TRUE(first.pick(random_logits(60, i), {}));
    Sampler second(s);
    second.skip(20), second.remember(first.memory());
    for (unsigned i = 20; i < 60; i++)
      EXPECT_EQ(*first.pick(random_logits(60, i), {}), *second.pick(random_logits(60, i), {}));
  }
}

}  // namespace
}  // namespace gimbal::test
