// hot: a spectrum for every 10 ms of a sound
#include "media/pieces.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fixed_math.h"
#include "base/format.h"

namespace gimbal {
namespace {

constexpr int kMelWindow = 400, kMelHop = 160, kMelBands = kMelWindow / 2 + 1;
constexpr double kTwoPi = 6.28318530717958647692;
constexpr double kSmallestPower = 5.960464477539063e-08;  // 2^-24

struct Complex {
  double re, im;
};

// The discrete Fourier transform of a window, by halves down to odd lengths (25).
class Spectrum {
 public:
  Spectrum() {
    for (int i = 0; i < kMelWindow; i++) {
      turn_[size_t(i)] = {fixed::cos(kTwoPi * i / kMelWindow), -fixed::sin(kTwoPi * i / kMelWindow)};
      hann_[size_t(i)] = 0.5 - 0.5 * turn_[size_t(i)].re;
    }
  }
  // The powers of all bands. `samples`: kMelWindow values.
  void power(const float* samples, double* out) {
    for (int i = 0; i < kMelWindow; i++) windowed_[size_t(i)] = double(samples[i]) * hann_[size_t(i)];
    transform(windowed_.data(), 1, kMelWindow, result_.data());
    for (int i = 0; i < kMelBands; i++) {
      const Complex c = result_[size_t(i)];
      out[i] = c.re * c.re + c.im * c.im;
    }
  }

 private:
  void transform(const double* x, int stride, int n, Complex* out) const {
    if (n % 2) {
      for (int k = 0; k < n; k++) {
        Complex sum{0, 0};
        for (int i = 0; i < n; i++) {
          const Complex t = turn_[size_t(i * k % n * (kMelWindow / n))];
          sum.re += x[i * stride] * t.re, sum.im += x[i * stride] * t.im;
        }
        out[k] = sum;
      }
      return;
    }
    const int half = n / 2;
    transform(x, stride * 2, half, out);
    transform(x + stride, stride * 2, half, out + half);
    for (int k = 0; k < half; k++) {
      const Complex a = out[k], b = out[k + half], t = turn_[size_t(k * (kMelWindow / n))];
      const Complex turned{b.re * t.re - b.im * t.im, b.re * t.im + b.im * t.re};
      out[k] = {a.re + turned.re, a.im + turned.im};
      out[k + half] = {a.re - turned.re, a.im - turned.im};
    }
  }

  std::array<Complex, kMelWindow> turn_, result_;
  std::array<double, kMelWindow> hann_, windowed_;
};

// Slaney's scale: linear to 1000 Hz, logarithmic above.
double mel_of(double hz) {
  return hz < 1000 ? hz * 3 / 200 : 15 + fixed::log(hz / 1000) * 27 / fixed::log(6.4);
}
double hz_of(double mel) {
  return mel < 15 ? mel * 200 / 3 : 1000 * fixed::exp((mel - 15) * fixed::log(6.4) / 27);
}

// Triangles over neighbouring bands, of equal area: [bins][kMelBands].
std::vector<double> mel_filters(int bins) {
  std::vector<double> edges(size_t(bins) + 2), out(size_t(bins) * kMelBands);
  const double top = mel_of(kSoundRate / 2.0);
  for (size_t i = 0; i < edges.size(); i++) edges[i] = hz_of(top * double(i) / (bins + 1));
  for (int b = 0; b < bins; b++) {
    const double low = edges[size_t(b)], middle = edges[size_t(b) + 1], high = edges[size_t(b) + 2];
    for (int k = 0; k < kMelBands; k++) {
      const double hz = double(k) * kSoundRate / kMelWindow;
      const double height =
          std::max(0.0, std::min((hz - low) / (middle - low), (high - hz) / (high - middle)));
      out[size_t(b) * kMelBands + size_t(k)] = height * 2 / (high - low);
    }
  }
  return out;
}

double log10_of(double x) { return fixed::log(x) / fixed::log(10); }

}  // namespace

Result<std::vector<Piece>> pieces_of(const PreprocessSettings& s, const Sound& sound, int image) {
  if (s.rule != PieceRule::Sound)
    return Error{Code::Unsupported,
                 format("the projector '{}' is for pictures, not for sounds", s.projector)};
  if (sound.samples.empty()) return Error{Code::Usage, "the sound is empty"};
  constexpr size_t kPieceSamples = size_t(kMelFrames) * kMelHop, kBefore = kMelWindow / 2;
  const size_t count = (sound.samples.size() + kPieceSamples - 1) / kPieceSamples,
               frames = count * kMelFrames;
  // The beginning is mirrored; silence follows.
  std::vector<float> padded(frames * kMelHop + kMelWindow);
  std::copy(sound.samples.begin(), sound.samples.end(), padded.begin() + std::ptrdiff_t(kBefore));
  for (size_t i = 1; i <= kBefore && i < sound.samples.size(); i++) padded[kBefore - i] = sound.samples[i];

  const std::vector<double> filters = mel_filters(s.mel_bins);
  const auto bins = size_t(s.mel_bins);
  std::vector<Piece> out(count);
  for (Piece& p : out) {
    p.image = image, p.what = PieceKind::Sound, p.width = kMelFrames, p.height = s.mel_bins;
    p.mel.resize(bins * kMelFrames);
  }
  Spectrum spectrum;
  std::array<double, kMelBands> power;
  const auto silence = float(log10_of(kSmallestPower));
  float largest = silence;
  for (size_t frame = 0; frame < frames; frame++) {
    const bool silent = frame * kMelHop >= sound.samples.size() + kBefore;
    if (!silent) spectrum.power(padded.data() + frame * kMelHop, power.data());
    float* to = out[frame / kMelFrames].mel.data() + frame % kMelFrames;
    for (size_t b = 0; b < bins; b++) {
      double sum = 0;
      if (!silent)
        for (size_t k = 0; k < kMelBands; k++) sum += filters[b * kMelBands + k] * power[k];
      const float value = silent ? silence : float(log10_of(std::max(sum, kSmallestPower)));
      to[b * kMelFrames] = value;
      largest = std::max(largest, value);
    }
  }
  for (Piece& p : out)
    for (float& v : p.mel) v = (std::max(v, largest - 8) + 4) / 4;
  return out;
}

}  // namespace gimbal
