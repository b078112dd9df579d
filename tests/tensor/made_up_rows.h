// Rows of many shapes, with weights: what encoders are compared on beyond golden data. Whole numbers of a
// linear congruential generator, so that every compiler makes the same rows.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace gimbal::test {

struct MadeUpRows {
  static constexpr int kRows = 8, kColumns = 256;
  std::string name;
  std::vector<float> values, importance;  // importance: one for each column
};

inline std::vector<MadeUpRows> made_up_rows() {
  uint32_t x = 20261126;
  const auto next = [&] { return float(int32_t(x = x * 1664525u + 1013904223u) >> 8) / float(1 << 23); };
  const auto normal = [&] { return (next() + next() + next() + next() + next() + next()) * 0.707f; };
  const auto below = [&](int n) { return int((next() + 1) * 0.5f * float(n)); };
  std::vector<MadeUpRows> all;
  const auto add = [&](const char* name, auto&& value) {
    MadeUpRows rows{name, {}, {}};
    for (int i = 0; i < MadeUpRows::kRows * MadeUpRows::kColumns; i++) rows.values.push_back(value(i));
    for (int i = 0; i < MadeUpRows::kColumns; i++) {
      const float n = normal();
      rows.importance.push_back(0.05f + n * n);
    }
    all.push_back(std::move(rows));
  };
  add("bell", [&](int) { return normal(); });
  add("even", [&](int) { return next(); });
  add("peaked", [&](int) { return normal() * std::fabs(normal()); });
  add("long tail", [&](int) { return normal() / (0.1f + std::fabs(next())); });
  add("outliers", [&](int i) { return normal() * (i % 128 == 5 ? 30.0f : 1.0f); });
  add("loud columns", [&](int i) { return normal() * (i % 16 == 3 ? 8.0f : 0.5f); });
  add("positive", [&](int) { return std::fabs(normal()); });
  add("far from zero", [&](int) { return 3 + 0.3f * normal(); });
  add("negative", [&](int) { return -std::fabs(normal()); });
  add("tiny", [&](int) { return normal() * 1e-6f; });
  add("large", [&](int) { return normal() * 1e4f; });
  add("ramp", [&](int i) { return float(i % 256 - 128) / 128; });
  add("rising ramp", [&](int i) { return float(i % 256) / 255; });
  add("short ramps", [&](int i) { return float(i % 32) / 31 - 0.5f; });
  add("three values", [&](int) { return 0.7f * float(below(3) - 1); });
  add("two values", [&](int) { return below(2) ? 0.3f : -0.9f; });
  add("eighths", [&](int) { return 0.125f * float(below(17) - 8); });
  add("mostly zero", [&](int) { return below(10) ? 0.0f : normal(); });
  add("alternating", [&](int i) { return float(i % 2 * 2 - 1) * (1 + 0.1f * normal()); });
  return all;
}

// Root of the mean squared error of `decoded`, weighted by importance or not.
inline double error_of(const MadeUpRows& rows, const std::vector<float>& decoded, bool weighted) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < decoded.size(); i++) {
    const double miss = double(decoded[i]) - rows.values[i];
    const double w = weighted ? rows.importance[i % rows.importance.size()] : 1;
    sum += w * miss * miss, weights += w;
  }
  return std::sqrt(sum / weights);
}

}  // namespace gimbal::test
