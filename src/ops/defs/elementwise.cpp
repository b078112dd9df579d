// Ops that make a value of one or two others at the same place.
// swiglu(gate, up) -> gate * sigmoid(gate) * up
// squared_relu_glu(gate, up) -> max(gate, 0)^2 * up
// gelu_glu(gate, up) -> gelu(gate) * up; gelu(x) = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2
// add(a, b) -> a + b
// scale(x) -> x * factor
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

// An op of one or two inputs of the same shape. `operations`: for one value.
constexpr OpDef of_one(const char* factor, double operations) {
  return {.inputs = {{"x", Role::Rows}}, .floats = {factor}, .operations = operations, .shape = shape_of_one};
}
constexpr OpDef of_two(const char* a, const char* b, double operations) {
  return {.inputs = {{a, Role::Rows}, {b, Role::Rows}}, .operations = operations, .shape = shape_of_two};
}

// One value of the output: puts value i, of which nothing but the values i of the inputs may be read.
using Each = void (*)(const Call&, size_t i);
template <Each each>
void reference_of(const Call& c) {
  for (size_t i = 0; i < c.computed; i++) each(c, i);
}

// Normal numbers times `FirstScale`, and normal numbers.
template <OpKind Kind, int FirstScale>
std::vector<Case> cases_of(DType named) {
  return row_cases(Kind, named, [named](Case& c, int width, Numbers& n) {
    if (named != DType::F32) return false;
    if (def(Kind).floats[0]) c.params.f[0] = 0.0371f;
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

// `Roundings`: that the op's definition in docs/architecture.md allows. `FirstScale`: of the first input of
// the cases.
template <OpKind Kind, Each each, int Roundings, int FirstScale = 1>
constexpr OpCheck check() {
  return {.reference = reference_of<each>,
          .tolerance = roundings<Roundings>,
          .cases = cases_of<Kind, FirstScale>,
          .bench = bench_of<Kind>};
}

void swiglu(const Call& c, size_t i) {
  const double gate = c.x(0)[i];
  c.put(i, gate / (1 + std::exp(-gate)) * c.x(1)[i]);
}
void squared_relu_glu(const Call& c, size_t i) {
  const double gate = c.x(0)[i] < 0 ? 0 : c.x(0)[i];
  c.put(i, gate * gate * c.x(1)[i]);
}
void gelu_glu(const Call& c, size_t i) {
  const double gate = c.x(0)[i], up = c.x(1)[i];
  const double u = std::sqrt(2 / std::acos(-1.0)) * (gate + 0.044715 * gate * gate * gate);
  const double y = gate / (1 + std::exp(-2 * u)) * up;  // as (1 + tanh(u)) / 2, which cancels
  // Five roundings of the exponent 2u are an error of e^-2u, and so of 1 + e^-2u. exp() ends at e^-87 and
  // e^88.
  const double exponent = 5 * std::fabs(2 * u) / (1 + std::exp(2 * u));
  c.put(i, y, std::fabs(y) * (16 + exponent) + std::fabs(gate * up) * 0x1p-100);
}
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

constinit const OpDef Add = of_two("a", "b", 1);
constinit const OpCheck AddCheck = check<OpKind::Add, add, 1>();

constinit const OpDef Scale = of_one("factor", 1);
constinit const OpCheck ScaleCheck = check<OpKind::Scale, scale, 1>();

}  // namespace gimbal::ops
