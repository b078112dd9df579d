// Products, convolutions, pooling, resampling.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

std::optional<Error> not_of_one_format(const char* name, const Tensor& a, const Tensor& b) {
  if (!floats(a) || state_of(a).type != state_of(b).type)
    return dtype_error(
        format("{}: {} with {}: expected floats of one format", name, describe(a), describe(b)),
        "convert with to()");
  return std::nullopt;
}

Dims or_each(const Dims& given, size_t n, int64_t value) { return given.empty() ? Dims(n, value) : given; }

// A convolution over a window of two dims; `up`: zeros between the values of x.
struct Window {
  Dims stride, padding, dilation, up, out;
  bool flip = false;
};
Tensor convolve(const Tensor& x, const Tensor& w, int64_t groups, const Window& v) {
  if (std::any_of(v.out.begin(), v.out.end(), [](int64_t d) { return d < 1; }) || x.count() == 0 ||
      w.count() == 0)
    return Tensor::zeros({x.dim(0), w.dim(0), std::max<int64_t>(0, v.out[0]), std::max<int64_t>(0, v.out[1])},
                         x.dtype(), x.queue());
  gimbal::OpParams p;
  auto set = [&](gimbal::ConvParam at, int64_t n) { p.i[int(at)] = n; };
  using enum gimbal::ConvParam;
  set(StrideX, v.stride[1]), set(StrideY, v.stride[0]), set(PadX, v.padding[1]), set(PadY, v.padding[0]);
  set(DilateX, v.dilation[1]), set(DilateY, v.dilation[0]), set(Groups, groups), set(UpX, v.up[1]),
      set(UpY, v.up[0]);
  set(OutX, v.out[1]), set(OutY, v.out[0]), set(Flip, v.flip);
  const Tensor in[] = {x, w};
  return apply(gimbal::OpKind::Conv, p, in);
}

// Options with one number for each of the two dims; those of one dim get a height of 1.
struct ConvSizes {
  Dims stride, padding, dilation, output_padding;
};
std::optional<Error> conv_misfit(const char* name, const Tensor& x, const Tensor& w, const ConvOptions& o,
                                 ConvSizes& s) {
  if (auto e = not_of_one_format(name, x, w)) return e;
  if (x.rank() != w.rank() || x.rank() < 3 || x.rank() > 4)
    return shape_error(
        format("{}: {} with {}: expected three dimensions of both, or four", name, describe(x), describe(w)));
  const size_t n = size_t(x.rank()) - 2;
  s = {or_each(o.stride, n, 1), or_each(o.padding, n, 0), or_each(o.dilation, n, 1),
       or_each(o.output_padding, n, 0)};
  for (Dims* d : {&s.stride, &s.padding, &s.dilation, &s.output_padding}) {
    if (d->size() != n)
      return shape_error(format("{}: {} numbers for a window of {} dimensions", name, d->size(), n));
    if (n == 1) d->insert(d->begin(), d == &s.padding || d == &s.output_padding ? 0 : 1);
    for (int64_t v : *d)
      if (v < (d == &s.padding || d == &s.output_padding ? 0 : 1) || v > INT32_MAX)
        return shape_error(format(
            "{}: strides, dilations and paddings must not be negative, strides and dilations not 0", name));
  }
  if (o.groups < 1) return shape_error(format("{}: {} groups", name, o.groups));
  return std::nullopt;
}
// Of one dim: with a height of 1.
Tensor flat(const Tensor& t) { return t.rank() == 3 ? t.unsqueeze(2) : t; }

}  // namespace

Tensor Tensor::matmul(const Tensor& o) const {
  const Tensor* all[] = {this, &o};
  if (auto bad = unusable(all)) return *bad;
  if (auto e = not_of_one_format("matmul", *this, o)) return refuse(*this, *e);
  if (rank() == 0 || o.rank() == 0)
    return refuse(
        *this, shape_error(format("matmul: {} with {}: a number has no rows", describe(*this), describe(o))));
  if (rank() == 1) {
    const Tensor y = unsqueeze(0).matmul(o);
    return y.ok() ? y.squeeze(-2) : y;
  }
  if (o.rank() == 1) {
    const Tensor y = matmul(o.unsqueeze(1));
    return y.ok() ? y.squeeze(-1) : y;
  }
  if (dim(-1) != o.dim(-2))
    return refuse(*this, shape_error(format("matmul: {} with {}: the inner dimensions differ ({} and {})",
                                            describe(*this), describe(o), dim(-1), o.dim(-2))));
  gimbal::Layout outer_a = state_->layout, outer_b = state_of(o).layout;
  outer_a.rank -= 2, outer_b.rank -= 2;
  const auto outer = gimbal::broadcast_dims(outer_a, outer_b);
  if (!outer)
    return refuse(*this,
                  shape_error(format("matmul: {} with {}: the outer dimensions neither agree nor repeat",
                                     describe(*this), describe(o))));
  Dims a(outer->dims().begin(), outer->dims().end()), b = a, y = a;
  a.insert(a.end(), {dim(-2), dim(-1)}), b.insert(b.end(), {o.dim(-2), o.dim(-1)}),
      y.insert(y.end(), {dim(-2), o.dim(-1)});
  const Tensor in[] = {broadcast_to(a), o.broadcast_to(b)};
  if (dim(-1) == 0 || std::find(y.begin(), y.end(), 0) != y.end()) return zeros(y, dtype(), queue());
  return apply(gimbal::OpKind::Product, {}, in);
}

Tensor linear(const Tensor& x, const Tensor& w) {
  const Tensor* all[] = {&x, &w};
  if (auto bad = unusable(all)) return *bad;
  if (w.rank() != 2 || x.rank() < 1 || x.dim(-1) != w.dim(1))
    return refuse(x, shape_error(format("linear: {} with {}: expected weights [out, {}]", describe(x),
                                        describe(w), x.rank() ? x.dim(-1) : 0)));
  return x.matmul((gimbal::info(state_of(w).type).block > 1 ? w.to(x.dtype()) : w).t());
}

Tensor conv(const Tensor& x, const Tensor& w, const ConvOptions& o) {
  const Tensor* all[] = {&x, &w};
  if (auto bad = unusable(all)) return *bad;
  const char* name = x.rank() == 3 ? "conv1d" : "conv2d";
  ConvSizes s;
  if (auto e = conv_misfit(name, x, w, o, s)) return refuse(x, *e);
  if (x.dim(1) % o.groups || w.dim(0) % o.groups || w.dim(1) != x.dim(1) / o.groups)
    return refuse(x, shape_error(format("{}: {} with {} in {} groups: the channels differ", name, describe(x),
                                        describe(w), o.groups)));
  const Tensor image = flat(x), kernel = flat(w);
  Dims out;
  for (int i = 0; i < 2; i++) {
    const int64_t reach = s.dilation[size_t(i)] * (kernel.dim(2 + i) - 1) + 1,
                  room = image.dim(2 + i) + 2 * s.padding[size_t(i)];
    if (kernel.dim(2 + i) < 1 || reach > room)
      return refuse(x, shape_error(format("{}: a window of {} does not fit into {} with padding {}", name,
                                          describe(w), describe(x), s.padding[size_t(i)])));
    out.push_back((room - reach) / s.stride[size_t(i)] + 1);
  }
  const Tensor y = convolve(image, kernel, o.groups, {s.stride, s.padding, s.dilation, {1, 1}, out});
  return x.rank() == 3 && y.ok() ? y.squeeze(2) : y;
}

// As a convolution of x with zeros between its values, by the kernel read backwards and its channels
// exchanged.
Tensor conv_transpose(const Tensor& x, const Tensor& w, const ConvOptions& o) {
  const Tensor* all[] = {&x, &w};
  if (auto bad = unusable(all)) return *bad;
  const char* name = x.rank() == 3 ? "conv_transpose1d" : "conv_transpose2d";
  ConvSizes s;
  if (auto e = conv_misfit(name, x, w, o, s)) return refuse(x, *e);
  if (x.dim(1) % o.groups || w.dim(0) != x.dim(1))
    return refuse(x, shape_error(format("{}: {} with {} in {} groups: the channels differ", name, describe(x),
                                        describe(w), o.groups)));
  const Tensor image = flat(x), by = flat(w);
  Window v{{1, 1}, {}, s.dilation, s.stride, {}, true};
  for (size_t i = 0; i < 2; i++) {
    const int64_t reach = s.dilation[i] * (by.dim(2 + int(i)) - 1);
    if (s.output_padding[i] >= std::max(s.stride[i], s.dilation[i]))
      return refuse(x, shape_error(format("{}: the output's padding {} is not below stride or dilation", name,
                                          s.output_padding[i])));
    v.padding.push_back(reach - s.padding[i]);
    v.out.push_back((image.dim(2 + int(i)) - 1) * s.stride[i] - 2 * s.padding[i] + reach +
                    s.output_padding[i] + 1);
    if (v.out.back() < 1)
      return refuse(x, shape_error(format("{}: nothing is left of {} without padding", name, describe(x))));
  }
  const int64_t inner = by.dim(0) / o.groups, each = by.dim(1), h = by.dim(2), width = by.dim(3);
  const Tensor kernel = by.reshape({o.groups, inner, each, h, width})
                            .permute({0, 2, 1, 3, 4})
                            .reshape({o.groups * each, inner, h, width});
  if (!kernel.ok()) return kernel;
  const Tensor y = convolve(image, kernel, o.groups, v);
  return x.rank() == 3 && y.ok() ? y.squeeze(2) : y;
}

// The windows as two dims behind those of their places.
static Tensor windows(const char* name, const Tensor& x, const Dims& kernel, const Dims& stride) {
  if (!x.ok()) return x;
  if (kernel.size() != 2 || stride.size() != 2)
    return refuse(x, shape_error(format("{}: expected two sizes and two strides", name)));
  if (x.rank() < 3) return refuse(x, shape_error(format("{}: {} is no picture", name, describe(x))));
  return x.unfold(x.rank() - 2, kernel[0], stride[0]).unfold(x.rank() - 1, kernel[1], stride[1]);
}
Tensor Tensor::avg_pool2d(const Dims& kernel, const Dims& stride) const {
  const Tensor w = windows("avg_pool2d", *this, kernel, stride);
  return w.ok() ? w.mean({-2, -1}) : w;
}
Tensor Tensor::max_pool2d(const Dims& kernel, const Dims& stride) const {
  const Tensor w = windows("max_pool2d", *this, kernel, stride);
  return w.ok() ? w.max({-2, -1}) : w;
}

// The nearest one at or before: place i of the larger row is place floor(i * in / out) of the smaller one.
static Tensor nearest(const char* name, const Tensor& x, int dim, int64_t out) {
  if (!x.ok()) return x;
  if (x.rank() < 1 - dim) return refuse(x, shape_error(format("{}: {} is no picture", name, describe(x))));
  const int64_t in = x.dim(dim);
  if (out < 0 || out > INT32_MAX || in > INT32_MAX || (in == 0 && out > 0))
    return refuse(x, shape_error(format("{}: {} to {}", name, describe(x), out)));
  std::vector<int32_t> ids(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; i++) ids[size_t(i)] = int32_t(i * in / out);
  return x.index_select(Tensor::from<int32_t>(ids, {out}, x.queue()), dim);
}
Tensor Tensor::upsample_nearest1d(int64_t width) const {
  return nearest("upsample_nearest1d", *this, -1, width);
}
Tensor Tensor::upsample_nearest2d(int64_t height, int64_t width) const {
  return nearest("upsample_nearest2d", nearest("upsample_nearest2d", *this, -2, height), -1, width);
}

// Two taps along one dim, with ids and weights of their own for each place.
static Tensor bilinear(const Tensor& x, int64_t out, bool align_corners) {
  const int64_t in = x.dim(-1);
  std::vector<int32_t> ids;
  std::vector<double> weights;
  for (int64_t i = 0; i < out; i++) {
    const double ratio =
        align_corners ? (out > 1 ? double(in - 1) / double(out - 1) : 0) : double(in) / double(out);
    const double at = align_corners ? double(i) * ratio : std::max(0.0, (double(i) + 0.5) * ratio - 0.5);
    const auto first = std::min(int64_t(at), in - 1), second = std::min(first + 1, in - 1);
    const double part = at - double(first);
    ids.insert(ids.end(), {int32_t(first), int32_t(second)});
    weights.insert(weights.end(), {1 - part, part});
  }
  const Tensor all[] = {x, Tensor::from<int32_t>(ids, {out, 2}, x.queue()),
                        Tensor::from<double>(weights, {out, 2}, x.queue()).to(x.dtype())};
  return apply(gimbal::OpKind::Resample, {}, all);
}
Tensor Tensor::upsample_bilinear2d(int64_t height, int64_t width, bool align_corners) const {
  if (!ok()) return *this;
  if (!floats(*this))
    return refuse(*this, dtype_error(format("upsample_bilinear2d is not defined for {}", describe(*this))));
  if (rank() < 2 || height < 1 || width < 1 || count() == 0 || height > INT32_MAX || width > INT32_MAX)
    return refuse(*this,
                  shape_error(format("upsample_bilinear2d: {} to {} x {}", describe(*this), height, width)));
  // Halves are rounded once, at the end.
  const Tensor wide =
      bilinear(state_->type == gimbal::DType::F64 ? *this : to(DType::F32), width, align_corners);
  if (!wide.ok()) return wide;
  const Tensor y = bilinear(wide.t(), height, align_corners);
  return y.ok() ? y.t().to(dtype()) : y;
}

Tensor Generator::draw(int distribution, const Dims& dims, DType type) {
  const auto& queue = TensorAccess::state(queue_);
  if (!gimbal::has(gimbal::kFloats, own(type)))
    return failed(queue, dtype_error(format("random numbers are floats, not {}", name_of(type))));
  if (auto why = gimbal::check_dims(dims))
    return failed(queue, shape_error(format("random numbers of {}: {}", gimbal::to_string(dims), *why)));
  const int64_t n = gimbal::dense_layout(dims).count();
  if (n == 0) return uninitialized(queue, own(type), dims);
  const uint32_t words[] = {uint32_t(seed_), uint32_t(seed_ >> 32), uint32_t(block_), uint32_t(block_ >> 32)};
  const Tensor state = Tensor::from<uint32_t>(words, {4}, queue_);
  block_ += uint64_t(n + 3) / 4;
  gimbal::OpParams p;
  p.i[0] = distribution, p.i[1] = int64_t(own(type)), p.i[2] = n;
  return apply(gimbal::OpKind::Random, p, std::span(&state, 1)).reshape(dims);
}
Tensor Generator::uniform(const Dims& dims, DType type) {
  return draw(int(gimbal::Distribution::Uniform), dims, type);
}
Tensor Generator::normal(const Dims& dims, DType type) {
  return draw(int(gimbal::Distribution::Normal), dims, type);
}

void Queue::set_seed(uint64_t seed) const {
  const std::lock_guard lock(state_->random_mutex);
  state_->seed = seed, state_->block = 0;
}
uint64_t Queue::seed() const {
  const std::lock_guard lock(state_->random_mutex);
  return state_->seed;
}

namespace {
// A generator that begins behind the numbers drawn so far.
Generator next_numbers(const Queue& q, const Dims& dims) {
  Queue::State& s = *TensorAccess::state(q);
  const int64_t n = gimbal::check_dims(dims) ? 0 : gimbal::dense_layout(dims).count();
  const std::lock_guard lock(s.random_mutex);
  return Generator(s.seed, q, std::exchange(s.block, s.block + uint64_t(n + 3) / 4));
}
}  // namespace

Tensor Tensor::uniform(const Dims& dims, DType type, const Queue& q) {
  return next_numbers(q, dims).uniform(dims, type);
}
Tensor Tensor::normal(const Dims& dims, DType type, const Queue& q) {
  return next_numbers(q, dims).normal(dims, type);
}

}  // namespace gimbal::v1
