// Measures how likely a text is to a model, and how far the predictions of two models differ. Sums in
// double, with the same bits on every machine.
#pragma once
#include <cstdint>
#include <span>

namespace gimbal {

// log(sum(exp(logits))): a token's log probability is its logit minus this. The logits are not empty.
double log_sum_exp(std::span<const float> logits);

// Kullback-Leibler divergence in nats: sum over tokens of p * log(p / q), where p are the probabilities of
// `of` and q those of `from`. Both have the same size. Never below 0.
double divergence(std::span<const float> of, std::span<const float> from);

// The running mean of a series of numbers, and its standard error.
class Mean {
 public:
  void add(double x) {
    count_++;
    const double before = x - mean_;
    mean_ += before / double(count_);
    squares_ += before * (x - mean_);
  }
  int64_t count() const { return count_; }
  double value() const { return mean_; }
  double standard_error() const;  // of the mean; 0 for fewer than two numbers

 private:
  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // squares of distances from the mean
};

}  // namespace gimbal
