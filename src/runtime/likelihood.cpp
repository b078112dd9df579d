// hot: every logit
#include "runtime/likelihood.h"

#include <algorithm>
#include <cmath>

#include "base/fixed_math.h"

namespace gimbal {

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  size_t i = 0;
  for (; i + fixed::kLanes <= logits.size(); i += fixed::kLanes) {
    double x[fixed::kLanes], e[fixed::kLanes];
    for (size_t k = 0; k < fixed::kLanes; k++) x[k] = logits[i + k] - top;
    fixed::exp(x, e);
    for (double one : e) sum += one;
  }
  for (; i < logits.size(); i++) sum += fixed::exp(logits[i] - top);
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
