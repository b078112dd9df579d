// Compares what the filters leave, and with which probabilities, with the plain computation in
// sampler_reference.h: each filter alone, random combinations, and large vocabularies.
#include <limits>

#include "runtime/sampler_reference.h"

namespace gimbal {
namespace {

using namespace gimbal::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void compare(const SamplerSettings& s, const std::vector<float>& logits,
             const std::vector<int32_t>& history = {}) {
  TokenDistribution got = actual(s, logits, history), want = expected(s, logits, history);
  ASSERT_EQ(got.size(), want.size());
  // Adjusted logits are rounded to float: 24 bits of numbers up to 40 or so, divided by the temperature.
  double tolerance = 1e-5 / std::min(1.0, double(s.temperature));
  for (auto [id, p] : want) {
    ASSERT_TRUE(got.count(id)) << id;
    ASSERT_NEAR(got[id], p, tolerance * p + 1e-300) << id;
  }
}

TEST(SamplerFilters, EachFilterAloneMatchesThePlainComputation) {
  for (int n : {1, 2, 7, 63, 64, 65, 500, 3000}) {
    for (unsigned seed = 0; seed < 8; seed++) {
      auto logits = random_logits(n, seed * 100 + n);
      std::vector<SamplerSettings> cases(1, plain());
      auto with = [&](auto member, auto value) {
        SamplerSettings s = plain();
        s.*member = value;
        cases.push_back(s);
      };
      for (float t : {0.01f, 0.3f, 0.8f, 1.7f, 50.0f}) with(&SamplerSettings::temperature, t);
      for (int k : {1, 2, 40, 300, n, n + 1, 1000000}) with(&SamplerSettings::top_k, k);
      for (float p : {0.0f, 0.01f, 0.5f, 0.9f, 0.95f, 0.9999f}) with(&SamplerSettings::top_p, p);
      for (float p : {0.01f, 0.05f, 0.5f, 1.0f}) with(&SamplerSettings::min_p, p);
      for (float p : {0.0f, 0.1f, 0.5f, 0.9f, 0.9999f}) with(&SamplerSettings::typical_p, p);
      for (size_t i = 0; i < cases.size(); i++) {
        SCOPED_TRACE(testing::Message() << "n " << n << " seed " << seed << " case " << i);
        ASSERT_NO_FATAL_FAILURE(compare(cases[i], logits));
      }
    }
  }
}

// A mass that the first tokens reach exactly needs no token more.
TEST(SamplerFilters, TopPAtExactEquality) {
  for (const auto& [n, mass, left] :
       {std::tuple(2, 0.5f, 1u), {4, 0.25f, 1u}, {4, 0.5f, 2u}, {8, 0.75f, 6u}}) {
    SamplerSettings s = plain();
    s.top_p = mass;
    const std::vector<float> equal(size_t(n), 1.5f);
    EXPECT_EQ(actual(s, equal, {}).size(), left) << mass << " of " << n;
    s.top_p = std::nextafter(mass, 1.f);
    EXPECT_EQ(actual(s, equal, {}).size(), left + 1) << "a little more than " << mass << " of " << n;
    s = plain(), s.typical_p = mass;
    EXPECT_EQ(actual(s, equal, {}).size(), left) << "typical " << mass << " of " << n;
  }
}

TEST(SamplerFilters, RandomCombinationsMatchThePlainComputation) {
  std::mt19937 r(1);
  auto one_of = [&](std::vector<float> v) { return v[r() % v.size()]; };
  std::map<size_t, int> sizes;
  for (int round = 0; round < 3000; round++) {
    int n = 1 + r() % (round % 10 ? 200 : 2000);
    auto logits = random_logits(n, r(), one_of({0.1f, 1, 5}));
    if (n > 3 && r() % 3 == 0) logits[r() % n] = -kInfinity;
    std::vector<int32_t> history(r() % 150);
    for (int32_t& id : history) id = r() % std::min(n, 30);
    SamplerSettings s;
    s.temperature = one_of({0.2f, 0.8f, 1, 1.5f});
    s.top_k = int(one_of({0, 1, 5, 40, 100}));
    s.top_p = one_of({1, 0.95f, 0.7f, 0.3f});
    s.min_p = one_of({0, 0.05f, 0.2f});
    s.typical_p = one_of({1, 1, 0.9f, 0.5f});
    s.repeat_penalty = one_of({1, 1.1f, 1.5f, 0.8f});
    s.frequency_penalty = one_of({0, 0.2f, -0.3f});
    s.presence_penalty = one_of({0, 0.5f, -0.4f});
    s.penalty_window = int(one_of({-1, 0, 1, 64, 1000}));
    for (int i = r() % 4; i > 0; i--) s.logit_bias.push_back({int32_t(r() % n), one_of({2, -2.5f, 10})});
    if (n > 10 && r() % 4 == 0) s.logit_bias.push_back({int32_t(r() % n), -kInfinity});
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(compare(s, logits, history));
    sizes[actual(s, logits, history).size()]++;
  }
  EXPECT_GT(sizes.size(), 50u) << "the combinations no longer leave varied candidates";
}

TEST(SamplerFilters, LargeVocabulariesMatchToo) {
  auto logits = random_logits(150000, 5);
  for (float p : {1.0f, 0.95f, 0.5f}) {
    SamplerSettings s = plain();
    s.top_p = p;
    compare(s, logits);
    s.min_p = 0.5f;
    s.top_k = 1000;
    compare(s, logits);
  }
}

}  // namespace
}  // namespace gimbal
