// hot: every pixel of a picture passes here
#include "media/picture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fixed_math.h"

namespace gimbal {
namespace {

constexpr int kWeightBits = 22;  // of a weight of 1

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= 3.14159265358979323846;
  return fixed::sin(x) / x;
}

struct FilterShape {
  double radius;
  double (*at)(double);
};

double bilinear_at(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}
double bicubic_at(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}
double lanczos_at(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

constexpr FilterShape shape_of(ResampleFilter filter) {
  switch (filter) {
    case ResampleFilter::Bilinear: return {1.0, bilinear_at};
    case ResampleFilter::Bicubic: return {2.0, bicubic_at};
    case ResampleFilter::Lanczos: return {3.0, lanczos_at};
  }
  return {1.0, bilinear_at};
}

// The weights of one direction. The values of output i are those from `first` on, with `count` weights that
// begin at `weights[i * stride]`.
struct Taps {
  struct Span {
    int first, count;
  };
  std::vector<Span> spans;
  std::vector<int32_t> weights;
  size_t stride = 0;
};

Taps taps(int in, int out, ResampleFilter filter) {
  const FilterShape shape = shape_of(filter);
  const double scale = double(in) / out, stretch = std::max(scale, 1.0), inverse = 1.0 / stretch;
  const double support = shape.radius * stretch;
  Taps t;
  t.stride = size_t(std::ceil(support)) * 2 + 1;
  t.spans.resize(size_t(out));
  t.weights.assign(t.stride * size_t(out), 0);
  std::vector<double> exact(t.stride);
  for (int i = 0; i < out; i++) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, int(centre - support + 0.5));
    const int count = std::min(in, int(centre + support + 0.5)) - first;
    double sum = 0;
    for (int x = 0; x < count; x++) sum += exact[size_t(x)] = shape.at((x + first - centre + 0.5) * inverse);
    for (int x = 0; x < count; x++) {
      const double w = (sum != 0 ? exact[size_t(x)] / sum : exact[size_t(x)]) * (1 << kWeightBits);
      t.weights[size_t(i) * t.stride + size_t(x)] = int32_t(w < 0 ? w - 0.5 : w + 0.5);
    }
    t.spans[size_t(i)] = {first, count};
  }
  return t;
}

uint8_t rounded(int32_t sum) { return uint8_t(std::clamp(sum >> kWeightBits, 0, 255)); }
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

Picture with_width(const Picture& from, int width, ResampleFilter filter) {
  const Taps t = taps(from.width, width, filter);
  Picture out{width, from.height, {}};
  out.rgb.resize(size_t(width) * size_t(from.height) * 3);
  uint8_t* to = out.rgb.data();
  for (int y = 0; y < from.height; y++) {
    const uint8_t* row = from.rgb.data() + size_t(y) * size_t(from.width) * 3;
    for (int i = 0; i < width; i++, to += 3) {
      const auto [first, count] = t.spans[size_t(i)];
      const int32_t* w = t.weights.data() + size_t(i) * t.stride;
      const uint8_t* p = row + size_t(first) * 3;
      int32_t r = kHalf, g = kHalf, b = kHalf;
      for (int x = 0; x < count; x++, p += 3) r += w[x] * p[0], g += w[x] * p[1], b += w[x] * p[2];
      to[0] = rounded(r), to[1] = rounded(g), to[2] = rounded(b);
    }
  }
  return out;
}

Picture with_height(const Picture& from, int height, ResampleFilter filter) {
  const Taps t = taps(from.height, height, filter);
  const size_t line = size_t(from.width) * 3;
  Picture out{from.width, height, {}};
  out.rgb.resize(line * size_t(height));
  std::vector<int32_t> sums(line);
  for (int i = 0; i < height; i++) {
    const auto [first, count] = t.spans[size_t(i)];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int y = 0; y < count; y++) {
      const int32_t w = t.weights[size_t(i) * t.stride + size_t(y)];
      const uint8_t* p = from.rgb.data() + size_t(first + y) * line;
      for (size_t x = 0; x < line; x++) sums[x] += w * p[x];
    }
    uint8_t* to = out.rgb.data() + size_t(i) * line;
    for (size_t x = 0; x < line; x++) to[x] = rounded(sums[x]);
  }
  return out;
}

}  // namespace

Picture resampled(const Picture& from, int width, int height, ResampleFilter filter) {
  if (width == from.width) return height == from.height ? from : with_height(from, height, filter);
  Picture wide = with_width(from, width, filter);
  return height == from.height ? wide : with_height(wide, height, filter);
}

Picture padded(const Picture& from, int width, int height, ResampleFilter filter,
               std::array<uint8_t, 3> colour) {
  const float scale = std::min(float(width) / float(from.width), float(height) / float(from.height));
  const Picture inner = resampled(from, std::min(int(std::ceil(float(from.width) * scale)), width),
                                  std::min(int(std::ceil(float(from.height) * scale)), height), filter);
  Picture out{width, height, {}};
  out.rgb.resize(size_t(width) * size_t(height) * 3);
  for (size_t i = 0; i < out.rgb.size(); i++) out.rgb[i] = colour[i % 3];
  const auto x = size_t(width - inner.width) / 2, y = size_t(height - inner.height) / 2;
  const size_t line = size_t(inner.width) * 3;
  for (size_t row = 0; row < size_t(inner.height); row++)
    std::memcpy(&out.rgb[((y + row) * size_t(width) + x) * 3], &inner.rgb[row * line], line);
  return out;
}

Picture cut_out(const Picture& from, int x, int y, int width, int height) {
  Picture out{width, height, {}};
  const size_t line = size_t(width) * 3;
  out.rgb.resize(line * size_t(height));
  for (size_t row = 0; row < size_t(height); row++)
    std::memcpy(&out.rgb[row * line], &from.rgb[((size_t(y) + row) * size_t(from.width) + size_t(x)) * 3],
                line);
  return out;
}

}  // namespace gimbal
