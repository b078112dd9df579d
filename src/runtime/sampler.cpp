// hot: every logit
// The chain of sampling: checks the numbers, adjusts them, filters, draws. The order is in the header.
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "runtime/sampling_table.h"

namespace gimbal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
Error out_of_range(const char* field, const char* expected, T found) {
  return {Code::Usage,
          format("'{}' is {}, but must be {}", field, found, expected),
          "Give a value in that range, or leave it out.",
          reason::kOutOfRange,
          field,
          format("{}", found),
          expected};
}

Error outside(int32_t id, size_t vocabulary) {
  return {
      Code::Usage,
      format("'logit_bias' names token id {}, but the model's vocabulary has only {} tokens", id, vocabulary),
      "Look the token's id up with the model's tokenizer.",
      reason::kOutOfRange,
      "logit_bias",
      format("{}", id),
      format("0 to {}", vocabulary - 1)};
}

// NaN is outside every range.
bool within(float x, float low, float high) { return x >= low && x <= high; }

// An adjustment must not turn a large logit into an infinity, which would mean something else.
float finite(double x) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return float(std::clamp(x, -kMax, kMax));
}

// The largest logit's index, the lowest one among equals.
int32_t argmax(std::span<const float> logits) {
  return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

// NaN and +infinity come from broken weights, or from kernels that verification would have found.
Status check_logits(std::span<const float> logits) {
  constexpr const char* kRemedy =
      "Compare the file's checksum with the publisher's. If it is right, try the CPU: the device may be at "
      "fault.";
  if (logits.empty()) return Error{Code::Failed, "the model gave no logits to choose a token from", kRemedy};
  size_t bad = 0;
  float max = -kInfinity;
  for (float x : logits) {
    bad += !(x < kInfinity);
    max = x > max ? x : max;
  }
  if (bad) {
    auto first = std::find_if(logits.begin(), logits.end(), [](float x) { return !(x < kInfinity); });
    return Error{
        Code::Malformed,
        format(
            "the model's output is {}, in {} of {} logits (the first is that of token id {}): the weights in "
            "this file are damaged",
            std::isnan(*first) ? "NaN (not a number)" : "+infinity", bad, logits.size(),
            first - logits.begin()),
        kRemedy};
  }
  if (max == -kInfinity) {
    return Error{
        Code::Malformed,
        format("the model's output is -infinity in all {} logits, so no token is possible: the weights "
               "in this file are damaged",
               logits.size()),
        kRemedy};
  }
  return Done{};
}

Status validate(const SamplerSettings& s) {
  for (const SamplingSetting& row : kSamplingSettings) {
    if (const auto* number = std::get_if<float Sampling::*>(&row.member)) {
      const float x = s.**number;
      if (!within(x, float(row.low), float(row.high)) || (row.above_low && x == float(row.low)))
        return out_of_range(row.field, row.expected, x);
    } else if (const auto* whole = std::get_if<int Sampling::*>(&row.member)) {
      if (s.**whole < row.low) return out_of_range(row.field, row.expected, s.**whole);
    }
  }
  for (auto [id, bias] : s.logit_bias) {
    if (id < 0) return out_of_range("logit_bias", "of token ids of 0 or more", id);
    if (!(bias < kInfinity)) {
      return out_of_range("logit_bias", "a finite number, or -inf to forbid the token", bias);
    }
  }
  return Done{};
}

Status validate(const SamplerSettings& s, size_t vocabulary) {
  if (auto ok = validate(s); !ok) return ok;
  for (auto [id, bias] : s.logit_bias)
    if (size_t(id) >= vocabulary) return outside(id, vocabulary);
  return Done{};
}

Sampler::Sampler(SamplerSettings settings) : settings_(std::move(settings)), random_(settings_.seed) {
  if (Status ok = validate(settings_); !ok) refused_ = ok.error();
}

void Sampler::penalize(std::span<const int32_t> window) {
  const SamplerSettings& s = settings_;
  counts_.resize(adjusted_.size());
  auto known = [&](int32_t id) { return id >= 0 && size_t(id) < counts_.size(); };
  for (int32_t id : window) {
    if (known(id)) counts_[size_t(id)]++;
  }
  for (int32_t id : window) {
    if (!known(id) || counts_[size_t(id)] == 0) continue;  // 0: done already
    float& logit = adjusted_[size_t(id)];
    if (logit > -kInfinity) {
      double x = logit;
      x = x > 0 ? x / s.repeat_penalty : x * s.repeat_penalty;
      logit = finite(x - double(counts_[size_t(id)]) * s.frequency_penalty - s.presence_penalty);
    }
    counts_[size_t(id)] = 0;
  }
}

Result<std::span<const float>> Sampler::adjust(std::span<const float> logits,
                                               std::span<const int32_t> history,
                                               std::span<const uint64_t> mask) {
  const SamplerSettings& s = settings_;
  size_t window = s.penalty_window < 0 ? history.size() : std::min(history.size(), size_t(s.penalty_window));
  const bool penalties = penalizes();
  if (s.logit_bias.empty() && !penalties && mask.empty()) return logits;

  adjusted_.assign(logits.begin(), logits.end());
  if (!mask.empty())
    for (size_t i = 0; i < adjusted_.size(); i++)
      if (i / 64 >= mask.size() || !(mask[i / 64] >> i % 64 & 1)) adjusted_[i] = -kInfinity;
  for (auto [id, bias] : s.logit_bias) {
    if (size_t(id) >= logits.size()) return outside(id, logits.size());
    float& logit = adjusted_[size_t(id)];
    if (bias == -kInfinity) logit = -kInfinity;
    else if (logit > -kInfinity) logit = finite(double(logit) + bias);
  }
  if (penalties) penalize(history.last(window));
  return std::span<const float>(adjusted_);
}

Result<std::span<const Candidate>> Sampler::candidates(std::span<const float> logits,
                                                       std::span<const int32_t> history,
                                                       std::span<const uint64_t> mask) {
  if (refused_) return *refused_;
  if (Status usable = check_logits(logits); !usable) return usable.error();
  Result<std::span<const float>> adjusted = adjust(logits, history, mask);
  if (!adjusted) return adjusted.error();

  const SamplerSettings& s = settings_;
  left_.clear();
  if (s.greedy || s.temperature == 0) {
    int32_t best = argmax(*adjusted);
    if ((*adjusted)[size_t(best)] > -kInfinity) left_.push_back({best, (*adjusted)[size_t(best)], 1});
  } else {
    left_.reserve(logits.size());
    for (size_t i = 0; i < adjusted->size(); i++) {
      if ((*adjusted)[i] > -kInfinity) left_.push_back({int32_t(i), (*adjusted)[i], 0});
    }
  }
  if (left_.empty()) {
    if (s.logit_bias.empty())
      return Error{Code::Usage, "the grammar forbids every token that the model holds possible",
                   "Write a grammar that allows more.", "", "grammar"};
    return Error{Code::Usage,
                 format("'logit_bias'{} forbids every token that the model holds possible",
                        mask.empty() ? "" : ", together with the grammar,"),
                 "Forbid fewer tokens.", "", "logit_bias"};
  }
  if (s.greedy || s.temperature == 0) return std::span<const Candidate>(left_);

  if (s.top_k > 0) keep_top_k(left_, s.top_k);
  filter();
  return std::span<const Candidate>(left_);
}

void Sampler::filter() {
  const SamplerSettings& s = settings_;
  if (s.typical_p < 1) keep_typical(left_, s.typical_p);
  if (s.top_p < 1) keep_top_p(left_, s.top_p);
  if (s.min_p > 0) keep_min_p(left_, s.min_p);
  set_probabilities(left_, s.temperature);
}

bool Sampler::penalizes() const {
  return settings_.repeat_penalty != 1 || settings_.frequency_penalty != 0 || settings_.presence_penalty != 0;
}

int Sampler::leading() const {
  if (refused_ || penalizes() || !settings_.logit_bias.empty()) return 0;
  return greedy() ? 1 : settings_.top_k;
}

Result<std::optional<int32_t>> Sampler::pick_top(std::span<const float> logits, std::span<const float> ids) {
  if (refused_) return *refused_;
  if (logits.empty() || !std::isfinite(logits[0])) return std::optional<int32_t>();
  left_.clear();
  for (size_t i = 0; i < logits.size(); i++)
    if (logits[i] > -kInfinity) left_.push_back({int32_t(ids[i]), logits[i], 1});
  if (greedy()) return std::optional(left_.front().id);
  filter();  // as left by keep_top_k(), in its order
  return std::optional(draw());
}

Result<int32_t> Sampler::pick(std::span<const float> logits, std::span<const int32_t> history,
                              std::span<const uint64_t> mask) {
  Result<std::span<const Candidate>> left = candidates(logits, history, mask);
  if (!left) return left.error();
  if (greedy()) return left->front().id;
  return draw();
}

void Sampler::skip(size_t picks) {
  if (greedy()) return;
  while (picks-- > 0) random_.next();
}

int32_t Sampler::draw() {
  double u = random_.uniform(), reached = 0;
  int32_t last = 0;
  for (const Candidate& c : left_) {
    reached += c.probability;
    if (u < reached) return c.id;
    if (c.probability > 0) last = c.id;
  }
  return last;  // rounding left the sum a little below 1
}

}  // namespace gimbal
