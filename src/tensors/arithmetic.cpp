// Functions of one or two operands: broadcasting, promotion, numbers as operands.
#include <algorithm>
#include <array>

#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

using Own = gimbal::DType;
bool is_float(Own t) { return gimbal::has(gimbal::kFloats, t); }

// bool < integers < f16, bf16 < f32 < f64. Halves of two kinds give f32; an unsigned integer gives way to a
// signed one, but u32 with one that does not hold its values gives i64. nullopt: stored formats, which no
// arithmetic takes.
std::optional<Own> promoted(Own a, Own b) {
  if (a == b) return a;
  if (!gimbal::has(gimbal::kNumbers & ~gimbal::kStored, a) ||
      !gimbal::has(gimbal::kNumbers & ~gimbal::kStored, b))
    return std::nullopt;
  if (a == Own::Bool) return b;
  if (b == Own::Bool) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) return a == Own::F64 || b == Own::F64 ? Own::F64 : Own::F32;
  constexpr Own kRising[] = {Own::U8, Own::I16, Own::I32, Own::U32, Own::I64};
  const bool unsigned_meets = (a == Own::U32) != (b == Own::U32) && a != Own::U8 && b != Own::U8;
  if (unsigned_meets) return Own::I64;
  for (int i = 4; i >= 0; i--)
    if (kRising[i] == a || kRising[i] == b) return kRising[i];
  return std::nullopt;
}

// The format in which a tensor meets a number in a function.
Own with_number(const gimbal::MapFacts& f, Own t, Scalar s) {
  if (is_float(t)) return t;
  if (t == Own::Bool && s.truth && gimbal::has(formats_of(f), t)) return t;
  if (s.floating) return Own::F32;
  return t == Own::Bool ? Own::I64 : t;
}

// Small operations ask for them by name, so it is found by a hash.
constexpr auto kFunctionNames = [] {
  std::array<std::string_view, std::size(gimbal::kMaps)> all{};
  std::transform(std::begin(gimbal::kMaps), std::end(gimbal::kMaps), all.begin(),
                 [](const gimbal::MapFacts& f) { return std::string_view(f.name); });
  return all;
}();
constexpr uint8_t place_of(std::string_view name) {
  size_t hash = name.size();
  for (char c : name) hash = 31 * hash + uint8_t(c);
  return uint8_t(hash);
}
// Numbers of functions from 1 on, from the place of their name on; 0: the end.
constexpr auto kFunctionPlaces = [] {
  std::array<uint8_t, 256> all{};
  for (size_t i = 0; i < kFunctionNames.size(); i++) {
    uint8_t at = place_of(kFunctionNames[i]);
    while (all[at]) at++;
    all[at] = uint8_t(i + 1);
  }
  return all;
}();
const gimbal::MapFacts* facts_of(std::string_view name) {
  for (uint8_t at = place_of(name); const size_t number = kFunctionPlaces[at]; at++)
    if (kFunctionNames[number - 1] == name) return &gimbal::kMaps[number - 1];
  return nullptr;
}

Result<const gimbal::MapFacts*> asked(std::string_view name, int operands) {
  const gimbal::MapFacts* f = facts_of(name);
  if (!f)
    return Error{Code::Usage,
                 format("there is no function '{}'", name),
                 "docs/operations.md lists them",
                 "",
                 "",
                 "",
                 "",
                 {}};
  if (f->inputs != operands)
    return shape_error(
        format("{} takes {}, found {}", name, f->inputs == 1 ? "one operand" : "two operands", operands));
  return f;
}
std::optional<Error> undefined(const gimbal::MapFacts& f, const Tensor& x) {
  if (gimbal::has(formats_of(f), state_of(x).type)) return std::nullopt;
  return dtype_error(format("{} is not defined for {}", f.name, describe(x)),
                     format("it takes {}", gimbal::names_of(formats_of(f))));
}

gimbal::OpParams params_of(const gimbal::MapFacts& f) {
  gimbal::OpParams p;
  p.i[0] = int64_t(f.function);
  return p;
}

Tensor with_scalar(const Tensor& t, std::string_view name, Scalar s, gimbal::Operands side) {
  if (!t.ok()) return t;
  const auto& queue = state_of(t).queue;
  auto a = asked(name, 2);
  if (!a) return failed(queue, a.error());
  const Tensor x = cast(t, with_number(**a, state_of(t).type, s));
  if (!x.ok()) return x;
  if (auto e = undefined(**a, x)) return failed(queue, *e);
  gimbal::OpParams p = params_of(**a);
  p.i[1] = int64_t(side), p.i[2] = s.integer, p.f[0] = s.number;
  if (x.count() == 0) return uninitialized(queue, result_of(**a, state_of(x).type), x.dims());
  return apply(gimbal::OpKind::Map, p, std::span(&x, 1));
}

}  // namespace

Tensor cast(const Tensor& t, gimbal::DType type) {
  if (!t.ok() || state_of(t).type == type) return t;
  if (!gimbal::has(gimbal::kNumbers, type))
    return failed(state_of(t).queue, dtype_error(format("to: {} cannot be converted to {}", describe(t),
                                                        gimbal::info(type).name)));
  if (t.count() == 0) return uninitialized(state_of(t).queue, type, t.dims());
  gimbal::OpParams p;
  p.i[0] = int64_t(type);
  return apply(gimbal::OpKind::Cast, p, std::span(&t, 1));
}

Tensor Tensor::to(DType type) const {
  return gimbal::info(own(type)).block > 1 ? quantize(*this, type) : cast(*this, own(type));
}

Tensor Tensor::map(std::string_view name) const {
  if (!ok()) return *this;
  auto a = asked(name, 1);
  if (!a) return failed(state_->queue, a.error());
  if (auto e = undefined(**a, *this)) return failed(state_->queue, *e);
  if (count() == 0) return uninitialized(state_->queue, result_of(**a, state_->type), dims());
  return apply(gimbal::OpKind::Map, params_of(**a), std::span(this, 1));
}

Tensor Tensor::map(std::string_view name, const Tensor& second) const {
  const Tensor* all[] = {this, &second};
  if (auto bad = unusable(all)) return *bad;
  auto a = asked(name, 2);
  if (!a) return failed(state_->queue, a.error());
  if (state_->type == state_of(second).type && state_->layout.rank == state_of(second).layout.rank &&
      std::equal(state_->layout.dim, state_->layout.dim + rank(), state_of(second).layout.dim) &&
      count() > 0) {
    if (auto e = undefined(**a, *this)) return failed(state_->queue, *e);
    const Tensor in[] = {*this, second};
    return apply(gimbal::OpKind::Map, params_of(**a), in);
  }
  const auto type = promoted(state_->type, state_of(second).type);
  const auto dims = gimbal::broadcast_dims(state_->layout, state_of(second).layout);
  if (!dims)
    return failed(state_->queue, shape_error(format("{}: {} with {}: the dimensions neither agree nor repeat",
                                                    name, describe(*this), describe(second))));
  if (!type)
    return failed(state_->queue, dtype_error(format("{} is not defined for {} with {}", name, describe(*this),
                                                    describe(second))));
  const Dims to(dims->dims().begin(), dims->dims().end());
  Tensor in[] = {cast(*this, *type).broadcast_to(to), cast(second, *type).broadcast_to(to)};
  for (const Tensor& t : in)
    if (!t.ok()) return t;
  if (auto e = undefined(**a, in[0])) return failed(state_->queue, *e);
  if (in[0].count() == 0) return uninitialized(state_->queue, result_of(**a, *type), to);
  return apply(gimbal::OpKind::Map, params_of(**a), in);
}

Tensor Tensor::map(std::string_view name, Scalar second) const {
  return with_scalar(*this, name, second, gimbal::Operands::NumberSecond);
}
Tensor map(std::string_view name, Scalar first, const Tensor& second) {
  return with_scalar(second, name, first, gimbal::Operands::NumberFirst);
}

// Functions of one operand that have numbers beside it.
static Tensor with_numbers(const Tensor& t, std::string_view name, double f0, double f1) {
  if (!t.ok()) return t;
  auto a = asked(name, 1);
  if (!a) return failed(state_of(t).queue, a.error());
  if (auto e = undefined(**a, t)) return failed(state_of(t).queue, *e);
  if (t.count() == 0) return t;
  gimbal::OpParams p = params_of(**a);
  p.f[0] = f0, p.f[1] = f1;
  return apply(gimbal::OpKind::Map, p, std::span(&t, 1));
}
Tensor Tensor::affine(double factor, double summand) const {
  return with_numbers(*this, "affine", factor, summand);
}
Tensor Tensor::elu(double alpha) const { return with_numbers(*this, "elu", alpha, 0); }

Tensor operator+(const Tensor& a, const Tensor& b) { return a.map("add", b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return a.map("sub", b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return a.map("mul", b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return a.map("div", b); }
Tensor operator+(const Tensor& a, Scalar b) { return a.map("add", b); }
Tensor operator-(const Tensor& a, Scalar b) { return a.map("sub", b); }
Tensor operator*(const Tensor& a, Scalar b) { return a.map("mul", b); }
Tensor operator/(const Tensor& a, Scalar b) { return a.map("div", b); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const Tensor* all[] = {&condition, &a, &b};
  if (auto bad = unusable(all)) return *bad;
  const auto& queue = state_of(a).queue;
  const auto type = promoted(state_of(a).type, state_of(b).type);
  if (!type)
    return failed(queue,
                  dtype_error(format("where: {} with {} have no common format", describe(a), describe(b))));
  if (is_float(state_of(condition).type))
    return failed(queue, dtype_error(format("where: the condition is {}, expected bool or integers",
                                            describe(condition))));
  auto dims = gimbal::broadcast_dims(state_of(a).layout, state_of(b).layout);
  if (dims) dims = gimbal::broadcast_dims(*dims, state_of(condition).layout);
  if (!dims)
    return failed(queue, shape_error(format("where: {}, {} and {}: the dimensions neither agree nor repeat",
                                            describe(condition), describe(a), describe(b))));
  const Dims to(dims->dims().begin(), dims->dims().end());
  const Tensor in[] = {cast(condition, Own::Bool).broadcast_to(to), cast(a, *type).broadcast_to(to),
                       cast(b, *type).broadcast_to(to)};
  for (const Tensor& t : in)
    if (!t.ok()) return t;
  if (in[0].count() == 0) return uninitialized(queue, *type, to);
  return apply(gimbal::OpKind::Select, {}, in);
}

}  // namespace gimbal::v1
