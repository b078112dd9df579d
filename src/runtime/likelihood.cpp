#include "runtime/likelihood.h"

#include <algorithm>
#include <cmath>

#include "base/fixed_math.h"

namespace gimbal {

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float l : logits) sum += fixed::exp(l - top);
  return top + fixed::log(sum);
}

double divergence(std::span<const float> of, std::span<const float> from) {
  const double p_sum = log_sum_exp(of), q_sum = log_sum_exp(from);
  double total = 0;
  for (size_t i = 0; i < of.size(); i++) {
    const double p = of[i] - p_sum, q = from[i] - q_sum;
    total += fixed::exp(p) * (p - q);
  }
  return std::max(total, 0.0);
}

double Mean::standard_error() const {
  return count_ < 2 ? 0 : std::sqrt(squares_ / double(count_ - 1) / double(count_));
}

}  // namespace gimbal
