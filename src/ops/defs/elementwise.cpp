// Ops that compute each value from one or two values at the same index.
// swiglu(gate, up) -> gate * sigmoid(gate) * up
// squared_relu_glu(gate, up) -> max(gate, 0)^2 * up
// gelu_glu(gate, up) -> gelu(gate) * up; gelu(x) = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2
// clamped_swiglu(gate, up) -> g * sigmoid(1.702 g) * (u + 1); g = min(gate, limit), u = up inside +-limit
// add(a, b) -> a + b; mul(a[d, ...], b) -> a * b; b may be [1, ...]: a factor for each d values
// scale(x) -> x * factor; clip(x) -> inside +-limit; soft_cap(x) -> cap * tanh(x / cap)
// silu(x) -> x * sigmoid(x); gelu(x) as above; gelu_erf(x) -> x * (1 + erf(x / sqrt(2))) / 2
// squared_relu(x) -> max(x, 0)^2; sigmoid(x); softplus(x) -> ln(1 + e^x)
// relu(x) -> max(x, 0); exponential(x) -> e^x
#include <algorithm>

#include "ops/defs/parts.h"

namespace gimbal::ops {
namespace {

using reference::Call;

Result<Shape> shape_of_one(const ShapeCall& c) {
  if (!is_f32(c.in[0])) return c.refuse("x must be f32");
  return c.in[0];
}
Result<Shape> shape_of_two(const ShapeCall& c) {
  if (!is_f32(c.in[0]) || c.in[0] != c.in[1]) return c.refuse("both must be f32 of the same shape");
  return c.in[0];
}

Result<Shape> shape_of_product(const ShapeCall& c) {
  Shape b = c.in[1];
  b.dim[0] = c.in[0].dim[0];
  if (!is_f32(b) || b != c.in[0] || (c.in[1].dim[0] != 1 && c.in[1] != c.in[0]))
    return c.refuse("both must be f32 of the same shape, or b [1, ...] with one value for each d of a");
  return c.in[0];
}

// An op of one input. `operations`: per value.
constexpr OpDef of_one(const char* factor, double operations) {
  return {.inputs = {{"x", Role::Rows}}, .floats = {factor}, .operations = operations, .shape = shape_of_one};
}
constexpr OpDef of_two(const char* a, const char* b, double operations) {
  return {.inputs = {{a, Role::Rows}, {b, Role::Rows}}, .operations = operations, .shape = shape_of_two};
}

// Computes output value i; may only read value i of the inputs.
using Each = void (*)(const Call&, size_t i);
template <Each each>
void reference_of(const Call& c) {
  for (size_t i = 0; i < c.computed; i++) each(c, i);
}

// The first input: normal numbers times `FirstScale`; the second: normal numbers.
template <OpKind Kind, int FirstScale>
std::vector<Case> cases_of(DType named) {
  return row_cases(Kind, named, [named](Case& c, int width, Numbers& n) {
    if (named != DType::F32) return false;
    if (def(Kind).floats[0]) c.params.f[0] = Kind == OpKind::Scale ? 0.0371f : 1.7f;
    for (int i = 0; i < def(Kind).max_inputs(); i++)
      c.inputs.push_back(rows_of(c, width, n, i == 0 ? float(FirstScale) : 1));
    return true;
  });
}

template <OpKind Kind>
Bench bench_of(DType, int rows, int) {
  OpParams p;
  if (def(Kind).floats[0]) p.f[0] = 0.5f;
  return bench_of_rows(def(Kind).max_inputs(), rows, p);
}

// `Roundings`: as allowed by the op's definition in docs/internals/numerics.md. `FirstScale`: of the first
// input of the cases.
template <OpKind Kind, Each each, int Roundings, int FirstScale = 1>
constexpr OpCheck check() {
  return {.reference = reference_of<each>,
          .tolerance = roundings<Roundings>,
          .cases = cases_of<Kind, FirstScale>,
          .bench = bench_of<Kind>};
}

// The second input with the shape of the first, and with one value per row of it.
std::vector<Case> mul_cases(DType named) {
  std::vector<Case> all;
  for (bool shared : {false, true})
    for (Case& c : row_cases(OpKind::Mul, named, [=](Case&c, int width, Numbers&n) {
           if (named != DType::F32) return false;
           const int heads = shared && width <= 256 ? 3 : 1;
           if (shared) c.name += format(" shared heads={}", heads);
           c.inputs.push_back(floats(Shape(DType::F32, {width, heads, c.capacity}), n));
           c.inputs.push_back(floats(Shape(DType::F32, {shared ? 1 : width, heads, c.capacity}), n));
           return true;
         }))
      all.push_back(std::move(c));
  return all;
}

void swiglu(const Call& c, size_t i) {
  const double gate = c.x(0)[i];
  c.put(i, gate / (1 + std::exp(-gate)) * c.x(1)[i]);
}
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
void silu(const Call& c, size_t i) { c.put(i, c.x()[i] * sigmoid_of(c.x()[i])); }
void sigmoid(const Call& c, size_t i) { c.put(i, sigmoid_of(c.x()[i])); }
void softplus(const Call& c, size_t i) { c.put(i, std::log1p(std::exp(c.x()[i]))); }
void relu(const Call& c, size_t i) { c.put(i, std::max(c.x()[i], 0.0)); }
void exponential(const Call& c, size_t i) { c.put(i, std::exp(std::clamp(c.x()[i], -87.0, 88.0))); }
void squared_relu(const Call& c, size_t i) {
  const double x = c.x()[i] < 0 ? 0 : c.x()[i];
  c.put(i, x * x);
}
void gelu_erf(const Call& c, size_t i) {  // erfc has an absolute error of 1.5e-7, not a relative one
  const double x = c.x()[i];
  c.put(i, x * std::erfc(-x / std::sqrt(2.0)) / 2, std::fabs(x));
}
void soft_cap(const Call& c, size_t i) {
  const double cap = c.params.f[0];
  c.put(i, cap * std::tanh(c.x()[i] / cap), cap);
}
void clamp(const Call& c, size_t i) {
  const double limit = double(float(c.params.f[0]));
  c.put(i, std::clamp(c.x()[i], -limit, limit));
}
void mul(const Call& c, size_t i) {
  const auto share = size_t(c.in[0]->shape.dim[0] / c.in[1]->shape.dim[0]);
  c.put(i, c.x(0)[i] * c.x(1)[i / share]);
}
void clamped_swiglu(const Call& c, size_t i) {
  const double limit = double(float(c.params.f[0])), g = std::min(c.x(0)[i], limit),
               u = std::clamp(c.x(1)[i], -limit, limit);
  // As in gelu: 1.702 and its product with g are both rounded.
  const double y = g * sigmoid_of(1.702 * g) * (u + 1),
               exponent = 2 * std::fabs(1.702 * g) * sigmoid_of(-1.702 * g);
  c.put(i, y, std::fabs(y) * (16 + exponent));
}
void squared_relu_glu(const Call& c, size_t i) {
  const double gate = c.x(0)[i] < 0 ? 0 : c.x(0)[i];
  c.put(i, gate * gate * c.x(1)[i]);
}
void put_gelu(const Call& c, size_t i, double gate, double up) {
  const double u = std::sqrt(2 / std::acos(-1.0)) * (gate + 0.044715 * gate * gate * gate);
  const double y = gate / (1 + std::exp(-2 * u)) * up;  // equals (1 + tanh(u)) / 2, which would cancel
  // Five roundings of the exponent 2u are an error of e^-2u, and so of 1 + e^-2u. exp() ends at e^-87 and
  // e^88.
  const double exponent = 5 * std::fabs(2 * u) / (1 + std::exp(2 * u));
  c.put(i, y, std::fabs(y) * (16 + exponent) + std::fabs(gate * up) * 0x1p-100);
}
void gelu_glu(const Call& c, size_t i) { put_gelu(c, i, c.x(0)[i], c.x(1)[i]); }
void gelu(const Call& c, size_t i) { put_gelu(c, i, c.x()[i], 1); }
void add(const Call& c, size_t i) {
  c.put(i, c.x(0)[i] + c.x(1)[i], std::fabs(c.x(0)[i]) + std::fabs(c.x(1)[i]));
}
void scale(const Call& c, size_t i) { c.put(i, c.x()[i] * c.params.f[0]); }

}  // namespace

constinit const OpDef SwiGlu = of_two("gate", "up", 16);
constinit const OpCheck SwiGluCheck = check<OpKind::SwiGlu, swiglu, 16, 4>();

constinit const OpDef SquaredReluGlu = of_two("gate", "up", 3);
constinit const OpCheck SquaredReluGluCheck = check<OpKind::SquaredReluGlu, squared_relu_glu, 2, 4>();

constinit const OpDef GeluGlu = of_two("gate", "up", 20);
constinit const OpCheck GeluGluCheck = check<OpKind::GeluGlu, gelu_glu, 1, 4>();

constinit const OpDef ClampedSwiGlu = {.inputs = {{"gate", Role::Rows}, {"up", Role::Rows}},
                                       .floats = {"limit"},
                                       .operations = 20,
                                       .shape = shape_of_two};
constinit const OpCheck ClampedSwiGluCheck = check<OpKind::ClampedSwiGlu, clamped_swiglu, 1, 4>();

constinit const OpDef Silu = of_one(nullptr, 16);
constinit const OpCheck SiluCheck = check<OpKind::Silu, silu, 16, 4>();

constinit const OpDef Gelu = of_one(nullptr, 20);
constinit const OpCheck GeluCheck = check<OpKind::Gelu, gelu, 1, 4>();

constinit const OpDef GeluErf = of_one(nullptr, 28);
constinit const OpCheck GeluErfCheck = check<OpKind::GeluErf, gelu_erf, 6, 2>();

constinit const OpDef SquaredRelu = of_one(nullptr, 2);
constinit const OpCheck SquaredReluCheck = check<OpKind::SquaredRelu, squared_relu, 1, 4>();

constinit const OpDef Relu = of_one(nullptr, 1);
constinit const OpCheck ReluCheck = check<OpKind::Relu, relu, 0, 4>();

constinit const OpDef Exp = of_one(nullptr, 12);
constinit const OpCheck ExpCheck = check<OpKind::Exp, exponential, 3, 4>();

constinit const OpDef Sigmoid = of_one(nullptr, 16);
constinit const OpCheck SigmoidCheck = check<OpKind::Sigmoid, sigmoid, 16, 4>();

constinit const OpDef Softplus = of_one(nullptr, 32);
constinit const OpCheck SoftplusCheck = check<OpKind::Softplus, softplus, 16, 4>();

constinit const OpDef SoftCap = of_one("cap", 20);
constinit const OpCheck SoftCapCheck = check<OpKind::SoftCap, soft_cap, 8, 2>();

constinit const OpDef Clamp = of_one("limit", 2);
constinit const OpCheck ClampCheck = check<OpKind::Clamp, clamp, 0, 2>();

constinit const OpDef Mul = {
    .inputs = {{"a", Role::Rows}, {"b", Role::Rows}}, .operations = 1, .shape = shape_of_product};
constinit const OpCheck MulCheck = [] {
  OpCheck c = check<OpKind::Mul, mul, 1>();
  c.cases = mul_cases;
  return c;
}();

constinit const OpDef Add = of_two("a", "b", 1);
constinit const OpCheck AddCheck = check<OpKind::Add, add, 1>();

constinit const OpDef Scale = of_one("factor", 1);
constinit const OpCheck ScaleCheck = check<OpKind::Scale, scale, 1>();

}  // namespace gimbal::ops
