// What the sampler should do, computed plainly in double precision: whole sorts, maps, the C library's exp
// and log. It shares nothing with the sampler, and is far too slow for use.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "runtime/sampler.h"

namespace gimbal::test {

// Everything off, temperature 1.
inline SamplerSettings plain() {
  SamplerSettings s;
  s.temperature = 1;
  s.top_k = 0;
  s.top_p = 1;
  s.min_p = 0;
  return s;
}

using TokenDistribution = std::map<int, double>;  // token id -> probability (or logit)

inline TokenDistribution softmax(const TokenDistribution& logits, double temperature) {
  double max = -INFINITY, sum = 0;
  for (auto [id, x] : logits) max = std::max(max, x);
  for (auto [id, x] : logits) sum += std::exp((x - max) / temperature);
  TokenDistribution p;
  for (auto [id, x] : logits) p[id] = std::exp((x - max) / temperature) / sum;
  return p;
}

// Keeps the first of `order` (smaller key first, then lower id) until the probabilities reach mass.
inline TokenDistribution keep_mass(const TokenDistribution& logits, std::vector<std::pair<double, int>> order,
                                   double mass) {
  TokenDistribution p = softmax(logits, 1), kept;
  std::sort(order.begin(), order.end());
  double reached = 0;
  for (auto [key, id] : order) {
    kept[id] = logits.at(id);
    if ((reached += p[id]) >= mass) break;
  }
  return kept;
}

inline TokenDistribution expected(const SamplerSettings& s, const std::vector<float>& logits,
                                  const std::vector<int32_t>& history) {
  std::vector<double> x(logits.begin(), logits.end());
  for (auto [id, bias] : s.logit_bias) x[id] += bias;
  size_t window =
      s.penalty_window == -1 ? history.size() : std::min<size_t>(history.size(), s.penalty_window);
  std::vector<int32_t> recent(history.end() - window, history.end());
  for (int id = 0; id < int(x.size()); id++) {
    auto n = std::count(recent.begin(), recent.end(), id);
    if (n == 0) continue;
    x[id] = x[id] > 0 ? x[id] / s.repeat_penalty : x[id] * s.repeat_penalty;
    x[id] -= n * double(s.frequency_penalty) + s.presence_penalty;
  }
  TokenDistribution left;
  for (int id = 0; id < int(x.size()); id++) {
    if (x[id] > -INFINITY) left[id] = x[id];
  }
  auto by_logit = [&] {
    std::vector<std::pair<double, int>> order;
    for (auto [id, v] : left) order.push_back({-v, id});
    return order;
  };
  if (s.top_k > 0) {
    auto order = by_logit();
    std::sort(order.begin(), order.end());
    TokenDistribution kept;
    for (int i = 0; i < std::min(int(order.size()), s.top_k); i++)
      kept[order[i].second] = left[order[i].second];
    left = kept;
  }
  if (s.typical_p < 1) {
    TokenDistribution p = softmax(left, 1);
    double entropy = 0;
    for (auto [id, q] : p) entropy -= q * std::log(q);
    std::vector<std::pair<double, int>> order;
    for (auto [id, q] : p) order.push_back({std::fabs(-std::log(q) - entropy), id});
    left = keep_mass(left, order, s.typical_p);
  }
  if (s.top_p < 1) left = keep_mass(left, by_logit(), s.top_p);
  if (s.min_p > 0) {
    TokenDistribution p = softmax(left, 1), kept;
    double best = 0;
    for (auto [id, q] : p) best = std::max(best, q);
    for (auto [id, q] : p) {
      if (q >= best * s.min_p) kept[id] = left[id];
    }
    left = kept;
  }
  return softmax(left, s.temperature);
}

inline TokenDistribution actual(const SamplerSettings& s, const std::vector<float>& logits,
                                const std::vector<int32_t>& history) {
  Sampler sampler(s);
  auto left = sampler.candidates(logits, history);
  TokenDistribution p;
  EXPECT_TRUE(left) << left.error().message;
  if (left) {
    for (const Candidate& c : *left) EXPECT_TRUE(p.emplace(c.id, c.probability).second) << "twice: " << c.id;
  }
  return p;
}

inline std::vector<float> random_logits(int n, unsigned seed, float spread = 3) {
  std::mt19937 r(seed);
  std::vector<float> x(n);
  for (float& v : x) v = spread * (float(r() % 2000001) / 1000000 - 1) * (1 + r() % 3);
  return x;
}

}  // namespace gimbal::test
