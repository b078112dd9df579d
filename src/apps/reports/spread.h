// Statistics of repeated measurements.
#pragma once
#include <algorithm>
#include <vector>

#include "apps/toolkit/terminal.h"
#include "base/json.h"

namespace gimbal {

struct Spread {
  double median = 0, least = 0, most = 0;
};
inline Spread spread(std::vector<double> v) {
  if (v.empty()) return {};
  std::sort(v.begin(), v.end());
  const size_t half = v.size() / 2;
  return {v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2, v.front(), v.back()};
}
inline Json spread_json(const std::vector<double>& v) {
  if (v.empty()) return nullptr;
  const Spread s = spread(v);
  return {{"median", s.median}, {"min", s.least}, {"max", s.most}};
}

}  // namespace gimbal
