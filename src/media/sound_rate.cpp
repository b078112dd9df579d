// hot: every sample of a sound passes here
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fixed_math.h"
#include "media/sound_decoders.h"

namespace gimbal {

std::vector<float> at_rate(const std::vector<float>& samples, int from, int to) {
  if (from == to) return samples;
  constexpr double kPi = 3.14159265358979323846;
  constexpr int kCrossings = 16;  // of the sinc, on each side
  const double cut = std::min(1.0, double(to) / from);
  const int half = int(std::ceil(kCrossings / cut));
  const int common = std::gcd(from, to), phases = to / common, step = from / common;
  // Output i lies at i * step / phases; its weights depend on the remainder alone. Their sum is 1.
  const int taps = 2 * half;
  std::vector<float> weights(size_t(phases) * size_t(taps));
  for (int phase = 0; phase < phases; phase++) {
    float* w = weights.data() + size_t(phase) * size_t(taps);
    double sum = 0;
    std::vector<double> exact(static_cast<size_t>(taps));
    for (int k = 0; k < taps; k++) {
      const double distance = k - (half - 1) - double(phase) / phases, x = kPi * cut * distance;
      const double window = std::abs(distance) < half ? 0.5 + 0.5 * fixed::cos(kPi * distance / half) : 0;
      sum += exact[size_t(k)] = window * (x == 0 ? 1 : fixed::sin(x) / x);
    }
    for (int k = 0; k < taps; k++) w[k] = float(exact[size_t(k)] / sum);
  }
  const auto n = int64_t(samples.size());
  std::vector<float> out(size_t((n * phases + step - 1) / step));
  for (size_t i = 0; i < out.size(); i++) {
    const int64_t at = int64_t(i) * step, first = at / phases - (half - 1);
    const float* w = weights.data() + size_t(at % phases) * size_t(taps);
    double sum = 0;
    const int64_t begin = std::max<int64_t>(0, -first), end = std::min<int64_t>(taps, n - first);
    for (int64_t k = begin; k < end; k++) sum += double(w[k]) * double(samples[size_t(first + k)]);
    out[i] = float(sum);
  }
  return out;
}

}  // namespace gimbal
