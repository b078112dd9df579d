#include "ops/reference.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "tensor/block_encode.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal::reference {
namespace {

// Values of an activation row: code times scale. A8_32 and A8_256 are described in tensor/dtypes.def. Kernels
// rely on the sums of the codes that are stored with them, so a block whose sums are wrong decodes to NaN.
void decode_activations(DType t, const std::byte* p, int64_t n, double* out) {
  const int block = info(t).block, codes = t == DType::A8_32 ? 8 : 4, group = t == DType::A8_32 ? 32 : 16;
  for (int64_t i = 0; i < n; i += group) {
    const std::byte* b = p + i / block * info(t).bytes;
    const int first = int(i % block);
    int sum = 0;
    for (int j = 0; j < group; j++) sum += read_le<int8_t>(b + codes + first + j);
    const int stored =
        t == DType::A8_32 ? read_le<int32_t>(b + 4) : read_le<int16_t>(b + 260 + 2 * (first / 16));
    for (int j = 0; j < group; j++)
      out[i + j] = stored == sum ? double(read_le<float>(b)) * read_le<int8_t>(b + codes + first + j) : NAN;
  }
}

struct CacheIndex {  // where position `pos` of a row's sequence lies in a cache
  const Tensor &sequence, &pages;
  int64_t page(int row, int64_t pos) const {
    int64_t s = int64_t(sequence.values[size_t(row)]);
    return int64_t(pages.values[size_t(s * pages.shape.dim[0] + pos / kPagePositions)]);
  }
  size_t element(const Shape& c, int row, int64_t pos, int head, int d) const {
    return size_t(((page(row, pos) * kPagePositions + pos % kPagePositions) * c.dim[1] + head) * c.dim[0] +
                  d);
  }
};

// What a cache of format `type` gives back of a head's n values: f16 and bf16 the nearest number (ties to
// even), q8_0 and q4_0 the blocks of tensor/block_encode.h, with the step NaN where something is not finite.
// Code times step is exact in f32, so reading a cache rounds nothing.
std::vector<double> as_cached(DType type, const double* x, int n) {
  if (type == DType::F32) return {x, x + n};
  std::vector<float> values(x, x + n);
  std::vector<uint8_t> stored(size_t(row_bytes(type, n)));
  encode(type, values.data(), n, stored.data());
  if (info(type).block == 32)
    for (int b = 0; b < n / 32; b++)
      mark_if_not_finite(&values[size_t(b) * 32], &stored[size_t(b) * info(type).bytes]);
  decode(type, stored.data(), n, values.data());
  return {values.begin(), values.end()};
}

void attention(const OpParams& p, std::span<const Tensor* const> in, Tensor& out, int rows,
               std::vector<double>* magnitude) {
  const Tensor &q = *in[0], &keys = *in[1], &values = *in[2], &position = *in[3];
  const CacheIndex at{*in[4], *in[5]};
  const int hd = int(q.shape.dim[0]), heads = int(q.shape.dim[1]), group = heads / int(keys.shape.dim[1]);
  for (int r = 0; r < rows; r++)
    for (int h = 0; h < heads; h++) {
      const size_t head_at = (size_t(r) * heads + h) * hd;
      const int64_t pos = int64_t(position.values[r]);
      const int64_t first = p.i[1] > 0 ? std::max<int64_t>(0, pos - p.i[1] + 1) : 0;
      std::vector<double> score;
      double best = -INFINITY, spread = 0;
      for (int64_t j = first; j <= pos; j++) {
        double s = 0, terms = 0;
        for (int d = 0; d < hd; d++) {
          double t = q.values[head_at + d] * keys.values[at.element(keys.shape, r, j, h / group, d)];
          s += t, terms += std::fabs(t);
        }
        score.push_back(s * p.f[0]);
        best = std::max(best, score.back());
        spread = std::max(spread, terms * std::fabs(double(p.f[0])));
      }
      double total = 0;
      for (double& s : score) total += s = std::exp(s - best);
      for (int d = 0; d < hd; d++) {
        double y = 0, terms = 0;
        for (int64_t j = first; j <= pos; j++) {
          double t =
              score[size_t(j - first)] / total * values.values[at.element(values.shape, r, j, h / group, d)];
          y += t, terms += std::fabs(t);
        }
        out.values[head_at + d] = y;
        // An error e of a score is an error e of its weight, relative to it, and as much of the weights' sum.
        const double roundings = double(score.size()) + 24 + 2 * spread * (hd + 4);
        if (magnitude) (*magnitude)[head_at + d] = terms * roundings;
      }
    }
}

// Whether a stands before b in rising order.
bool below(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The places of n values in order, equal ones as they stood.
std::vector<size_t> places_in_order(const double* x, size_t n, SortOrder order) {
  std::vector<size_t> places(n);
  for (size_t i = 0; i < n; i++) places[i] = i;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return order == SortOrder::Falling ? below(x[b], x[a]) : below(x[a], x[b]);
  });
  return places;
}

}  // namespace

Tensor decode(const Shape& shape, const void* dense) {
  Tensor t{shape, std::vector<double>(size_t(shape.count()))};
  const auto* p = static_cast<const std::byte*>(dense);
  const int64_t n = shape.count();
  if (shape.type == DType::I32) {
    for (int64_t i = 0; i < n; i++) t.values[size_t(i)] = read_le<int32_t>(p + 4 * i);
  } else if (shape.type == DType::A8_32 || shape.type == DType::A8_256) {
    decode_activations(shape.type, p, n, t.values.data());
  } else {
    std::vector<float> f(static_cast<size_t>(n));
    decode_tensor(shape.type, p, n, f.data());
    std::copy(f.begin(), f.end(), t.values.begin());
  }
  return t;
}

void run(OpKind kind, const OpParams& p, std::span<const Tensor* const> in, Tensor& out, int rows,
         int out_rows, std::vector<double>* magnitude) {
  if (magnitude) magnitude->assign(out.values.size(), 0);
  auto put = [&](size_t i, double value, double terms) {
    out.values[i] = value;
    if (magnitude) (*magnitude)[i] = terms;
  };
  const Tensor &a = *in[0], &b = *in[in.size() > 1 ? 1 : 0];
  const auto last = out.shape.last();
  const int real = kind == OpKind::SelectRows ? out_rows : rows;
  const size_t computed = out.values.size() / size_t(last) * size_t(std::min<int64_t>(real, last));
  switch (kind) {
    case OpKind::Embed:
      for (size_t i = 0, d = size_t(a.shape.dim[0]); i < computed; i++) {
        double v = a.values[size_t(b.values[i / d]) * d + i % d];
        put(i, v, std::fabs(v));
      }
      return;
    case OpKind::RmsNorm:
      for (size_t i = 0, d = size_t(a.shape.dim[0]); i < computed; i += d) {
        double squares = 0;
        for (size_t j = 0; j < d; j++) squares += a.values[i + j] * a.values[i + j];
        double scale = 1 / std::sqrt(squares / double(d) + p.f[0]);
        for (size_t j = 0; j < d; j++) {
          double v = a.values[i + j] * scale * b.values[j];
          put(i + j, v, std::fabs(v));
        }
      }
      return;
    case OpKind::Quantize:  // the meaning is the value itself; the rounding is bounded by half a step of the
                            // block
      for (size_t i = 0, n = size_t(info(out.shape.type).block); i < computed; i++) {
        double largest = 0;
        for (size_t j = i / n * n; j < i / n * n + n; j++)
          largest = std::max(largest, std::fabs(a.values[j]));
        put(i, a.values[i], largest / 254);
      }
      return;
    case OpKind::MatMul: {
      const size_t k = size_t(a.shape.dim[0]), n = size_t(a.shape.dim[1]);
      for (size_t i = 0; i < computed; i++) {
        const double *w = &a.values[i % n * k], *x = &b.values[i / n * k];
        double s = 0, terms = 0;
        for (size_t j = 0; j < k; j++) s += w[j] * x[j], terms += std::fabs(w[j] * x[j]);
        if (in.size() == 3) s += in[2]->values[i % n], terms += std::fabs(in[2]->values[i % n]);
        put(i, s, terms);
      }
      return;
    }
    case OpKind::Rope: {
      const size_t hd = size_t(a.shape.dim[0]), row = hd * size_t(a.shape.dim[1]),
                   rot = size_t(b.shape.dim[0]);
      for (size_t i = 0; i < computed; i++) {
        size_t d = i % hd, half = rot / 2;
        if (d >= rot) {
          put(i, a.values[i], 0);
          continue;
        }
        bool adjacent = RopePairs(p.i[0]) == RopePairs::Adjacent, second = adjacent ? d % 2 : d >= half;
        size_t pair = adjacent ? d / 2 : d % half, other = adjacent ? i - d + (d ^ 1)
                                                           : second ? i - half
                                                                    : i + half;
        double c = b.values[i / row * rot + 2 * pair], s = b.values[i / row * rot + 2 * pair + 1];
        double t = a.values[other] * (second ? s : -s);
        put(i, a.values[i] * c + t, std::fabs(a.values[i] * c) + std::fabs(t));
      }
      return;
    }
    case OpKind::CacheWrite: {
      const CacheIndex at{*in[3], *in[4]};
      const int hd = int(b.shape.dim[0]), heads = int(b.shape.dim[1]);
      for (int r = 0; r < rows; r++)
        for (int h = 0; h < heads; h++) {
          const auto v = as_cached(out.shape.type, &b.values[(size_t(r) * heads + h) * hd], hd);
          for (int d = 0; d < hd; d++)
            put(at.element(out.shape, r, int64_t(in[2]->values[r]), h, d), v[d], std::fabs(v[d]));
        }
      return;
    }
    case OpKind::Attention: return attention(p, in, out, rows, magnitude);
    case OpKind::SwiGlu:
      for (size_t i = 0; i < computed; i++) {
        double g = a.values[i], v = g / (1 + std::exp(-g)) * b.values[i];
        put(i, v, std::fabs(v));
      }
      return;
    case OpKind::SquaredReluGlu:
      for (size_t i = 0; i < computed; i++) {
        double g = a.values[i] < 0 ? 0 : a.values[i], v = g * g * b.values[i];
        put(i, v, std::fabs(v));
      }
      return;
    case OpKind::Scale:
      for (size_t i = 0; i < computed; i++) put(i, a.values[i] * p.f[0], std::fabs(a.values[i] * p.f[0]));
      return;
    case OpKind::Add:
      for (size_t i = 0; i < computed; i++)
        put(i, a.values[i] + b.values[i], std::fabs(a.values[i]) + std::fabs(b.values[i]));
      return;
    case OpKind::SelectRows:
      for (size_t i = 0, d = size_t(a.shape.dim[0]); i < computed; i++) {
        double v = a.values[size_t(b.values[i / d]) * d + i % d];
        put(i, v, 0);
      }
      return;
    case OpKind::TopK:
      for (size_t row = 0, n = size_t(a.shape.dim[0]), k = size_t(p.i[0]); row < computed / (2 * k); row++) {
        const auto places = places_in_order(&a.values[row * n], n, SortOrder::Falling);
        for (size_t i = 0; i < k; i++) {  // where there are no more values: -infinity, nowhere
          put(row * 2 * k + i, i < n ? a.values[row * n + places[i]] : -INFINITY, 0);
          put(row * 2 * k + k + i, i < n ? double(places[i]) : -1, 0);
        }
      }
      return;
    case OpKind::Sort:
    case OpKind::ArgSort:
      for (size_t at = 0, n = size_t(a.shape.dim[0]); at < computed; at += n) {
        const auto places = places_in_order(&a.values[at], n, SortOrder(p.i[0]));
        for (size_t i = 0; i < n; i++)
          put(at + i, kind == OpKind::Sort ? a.values[at + places[i]] : double(places[i]), 0);
      }
      return;
  }
}

}  // namespace gimbal::reference
