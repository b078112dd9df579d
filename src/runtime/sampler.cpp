// hot: every logit
// The chain of sampling: checks the numbers, adjusts them, filters, draws. The order is in the header.
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fixed_math.h"
#include "base/format.h"
#include "runtime/sampling_table.h"
#include "tokenizer/tokenizer.h"

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
      if (s.**whole < row.low || s.**whole > row.high)
        return out_of_range(row.field, row.expected, s.**whole);
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

Sampler::Sampler(SamplerSettings settings, const Tokenizer* tokenizer)
    : settings_(std::move(settings)),
      tokenizer_(tokenizer),
      random_(settings_.seed),
      memory_(settings_.mirostat ? 2.0 * settings_.mirostat_tau : settings_.adaptive_target),
      xtc_now_(settings_.xtc_probability == 1) {
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

// Whether a repetition does not reach over this token. Placeholders, which are no tokens, break one as well.
bool Sampler::breaks(int32_t token) const {
  if (token < 0 || size_t(token) >= adjusted_.size()) return true;
  if (!tokenizer_ || token >= tokenizer_->size()) return false;
  const std::string text = tokenizer_->piece(token, true);
  return std::any_of(settings_.dry_sequence_breakers.begin(), settings_.dry_sequence_breakers.end(),
                     [&](const std::string& b) { return text.find(b) != text.npos; });
}

// DRY (p-e-w, "DRY: a modern repetition penalty", 2024): where the end of the text occurred before, the token
// that followed it there would lengthen the repetition. The lengths are those of the Z algorithm on the
// reversed text, which is linear in its length.
void Sampler::penalize_repetition(std::span<const int32_t> window) {
  const SamplerSettings& s = settings_;
  const size_t n = window.size();
  if (n < 2) return;
  const auto at = [&](size_t i) { return window[n - 1 - i]; };  // from the end
  repeats_.assign(n, 0);
  int32_t longest = 0;
  for (size_t i = 1, left = 0, right = 0; i < n; i++) {
    size_t length = i < right ? std::min(right - i, size_t(repeats_[i - left])) : 0;
    while (i + length < n && at(length) == at(i + length)) length++;
    if (i + length > right) left = i, right = i + length;
    repeats_[i] = int32_t(length);
    longest = std::max(longest, int32_t(length));
  }
  int32_t unbroken = 0;
  while (unbroken < longest && !breaks(at(size_t(unbroken)))) unbroken++;
  if (unbroken < s.dry_allowed_length) return;
  counts_.resize(adjusted_.size());
  const auto known = [&](int32_t id) { return id >= 0 && size_t(id) < counts_.size(); };
  for (size_t i = 1; i < n; i++)
    if (const int32_t id = at(i - 1); known(id))
      counts_[size_t(id)] = std::max(counts_[size_t(id)], std::min(repeats_[i], unbroken));
  for (int32_t id : window) {
    if (!known(id) || counts_[size_t(id)] == 0) continue;
    float& logit = adjusted_[size_t(id)];
    const int32_t over = counts_[size_t(id)] - s.dry_allowed_length;
    if (over >= 0 && logit > -kInfinity)
      logit = finite(double(logit) -
                     double(s.dry_multiplier) * fixed::exp(double(over) * fixed::log(double(s.dry_base))));
    counts_[size_t(id)] = 0;
  }
}

Result<std::span<const float>> Sampler::adjust(std::span<const float> logits,
                                               std::span<const int32_t> history,
                                               std::span<const uint64_t> mask) {
  const SamplerSettings& s = settings_;
  size_t window = s.penalty_window < 0 ? history.size() : std::min(history.size(), size_t(s.penalty_window));
  const bool penalties = penalizes();
  if (s.logit_bias.empty() && !penalties && !lengthens() && mask.empty()) return logits;

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
  if (lengthens())
    penalize_repetition(history.last(
        s.dry_penalty_last_n < 0 ? history.size() : std::min(history.size(), size_t(s.dry_penalty_last_n))));
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

  if (s.mirostat == 1) keep_mirostat(left_, memory_, s.temperature, logits.size());
  if (s.mirostat == 2) keep_surprise(left_, memory_, s.temperature);
  if (s.mirostat) return std::span<const Candidate>(left_);
  if (s.top_n_sigma > 0) keep_top_n_sigma(left_, s.top_n_sigma);
  if (s.top_k > 0) keep_top_k(left_, s.top_k);
  filter();
  return std::span<const Candidate>(left_);
}

void Sampler::filter() {
  const SamplerSettings& s = settings_;
  if (s.typical_p < 1) keep_typical(left_, s.typical_p);
  if (s.top_p < 1) keep_top_p(left_, s.top_p);
  if (s.min_p > 0) keep_min_p(left_, s.min_p);
  if (xtc_now_) drop_top_choices(left_, s.xtc_threshold);
  temperature_ = s.temperature;
  if (s.dynatemp_range > 0)
    temperature_ = dynamic_temperature(left_, s.temperature, s.dynatemp_range, s.dynatemp_exponent);
  set_probabilities(left_, temperature_);
  if (adapts()) draw_to_target(left_, std::clamp(2.0 * s.adaptive_target - memory_, 0.0, 1.0));
}

void Sampler::take_chance() {
  if (settings_.xtc_probability > 0) xtc_now_ = random_.uniform() < settings_.xtc_probability;
}

bool Sampler::penalizes() const {
  return settings_.repeat_penalty != 1 || settings_.frequency_penalty != 0 || settings_.presence_penalty != 0;
}

int Sampler::leading() const {
  if (refused_ || penalizes() || lengthens() || !settings_.logit_bias.empty()) return 0;
  if (!greedy() && (settings_.mirostat || settings_.top_n_sigma > 0)) return 0;
  return greedy() ? 1 : settings_.top_k;
}

Result<std::optional<int32_t>> Sampler::pick_top(std::span<const float> logits, std::span<const float> ids) {
  if (refused_) return *refused_;
  if (logits.empty() || !std::isfinite(logits[0])) return std::optional<int32_t>();
  left_.clear();
  for (size_t i = 0; i < logits.size(); i++)
    if (logits[i] > -kInfinity) left_.push_back({int32_t(ids[i]), logits[i], 1});
  if (greedy()) return std::optional(left_.front().id);
  take_chance();
  filter();  // as left by keep_top_k(), in its order
  return std::optional(draw());
}

Result<int32_t> Sampler::pick(std::span<const float> logits, std::span<const int32_t> history,
                              std::span<const uint64_t> mask) {
  if (!greedy()) take_chance();
  Result<std::span<const Candidate>> left = candidates(logits, history, mask);
  if (!left) return left.error();
  if (greedy()) return left->front().id;
  return draw();
}

void Sampler::skip(size_t picks) {
  if (greedy()) return;
  for (picks *= settings_.xtc_probability > 0 ? 2 : 1; picks > 0; picks--) random_.next();
}

int32_t Sampler::draw() {
  const SamplerSettings& s = settings_;
  double u = random_.uniform(), reached = 0;
  const Candidate* drawn = &left_.front();
  for (const Candidate& c : left_) {
    reached += c.probability;
    if (c.probability > 0) drawn = &c;  // also where rounding left the sum a little below 1
    if (u < reached) break;
  }
  const int32_t id = drawn->id;
  if (s.mirostat)
    memory_ -= s.mirostat_eta * (-fixed::log(drawn->probability) / kNatsPerBit - s.mirostat_tau);
  if (s.mirostat || !adapts()) return id;
  const float logit = drawn->logit;
  set_probabilities(left_, temperature_);  // the model's own
  for (const Candidate& c : left_)
    if (c.id == id && c.logit == logit)
      memory_ = s.adaptive_decay * memory_ + (1 - double(s.adaptive_decay)) * c.probability;
  return id;
}

}  // namespace gimbal
