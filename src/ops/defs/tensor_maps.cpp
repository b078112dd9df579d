// map: a function of one or two numbers at the same place. ops/maps.def lists the functions, ops/formulas/
// has their arithmetic, ops/map_reference.h the results of the C library.
#include <algorithm>
#include <cstring>

#include "ops/defs/tensor_cases.h"
#include "ops/map_reference.h"
#include "ops/maps.h"

namespace gimbal::ops {
namespace {

Result<Shape> shape_of_map(const ShapeCall& c) {
  const MapFacts* f = map_facts(MapFunction(c.params.i[0]));
  if (!f) return c.refuse("there is no such function");
  if (!has(formats_of(*f), c.in[0].type))
    return c.refuse(format("{} is not defined for {}", f->name, info(c.in[0].type).name));
  const bool number = Operands(c.params.i[1]) != Operands::Values;
  if (int(c.in.size()) + number != f->inputs)
    return c.refuse(format("{} takes {} operands", f->name, f->inputs));
  if (c.in.size() > 1 && c.in[0] != c.in[1])
    return c.refuse("both must have one dtype and the same dimensions");
  Shape to = c.in[0];
  to.type = result_of(*f, to.type);
  return to;
}

// ---- reference
// Halves are computed in f32, and rounded once more.
template <class T>
void put_float(const reference::Call& c, const MapFacts& f, size_t i, double x, double y) {
  const DType as = sizeof(T) == 4 ? DType::F32 : DType::F64;
  const auto w = map_reference<double>(f.function, T(x), T(y), c.params.f);
  if (f.to_bool) return c.put_whole(i, w != 0);
  if (f.ulps == 0) return c.put_exact(i, rounded(c.out.shape.type, rounded(as, w)));
  // A unit in the last place is up to two roundings; the C library's own double has one unit besides.
  const double units = as == DType::F32 ? f.ulps : 4 + 1;
  c.put(i, w,
        2 * units * std::fabs(w) + allowed_absolute<T>(f.function) / (as == DType::F32 ? 0x1p-24 : 0x1p-53));
}

void map_of_numbers(const reference::Call& c) {
  const MapFacts& f = *map_facts(MapFunction(c.params.i[0]));
  const auto which = Operands(c.params.i[1]);
  const DType type = c.in[0]->shape.type;
  const size_t second = c.in.size() - 1;
  for (size_t i = 0; i < c.computed; i++) {
    if (has(kFloats, type)) {
      const double number = rounded(type, c.params.f[0]);
      const double x = which == Operands::NumberFirst ? number : c.x()[i],
                   y = which == Operands::NumberSecond  ? number
                       : which == Operands::NumberFirst ? c.x()[i]
                                                        : c.x(second)[i];
      type == DType::F64 ? put_float<double>(c, f, i, x, y) : put_float<float>(c, f, i, x, y);
    } else {
      const int64_t number = wrapped(type, c.params.i[2]);
      const int64_t x = which == Operands::NumberFirst ? number : c.whole()[i],
                    y = which == Operands::NumberSecond  ? number
                        : which == Operands::NumberFirst ? c.whole()[i]
                                                         : c.whole(second)[i];
      const int bits = type == DType::Bool ? 1 : 8 * info(type).bytes;
      const auto low = int64_t(map_reference(f.function, x, y, bits, c.params.f));
      // Of bool the last bit counts.
      c.put_whole(i, f.to_bool || type == DType::Bool ? low & 1 : wrapped(type, low));
    }
  }
}

// ---- cases
// Arguments that every function has results for: of all sizes, and small ones.
CaseInput arguments(const MapFacts& f, DType t, int64_t count, Numbers& n, bool second, Lies how) {
  const Shape s(t, {count});
  CaseInput wide = numbers(s, n, Fill::Wide), near = numbers(s, n, Fill::Normal);
  if (!has(kFloats, t)) {
    // Shifts and exponents that leave something.
    if (second &&
        (f.function == MapFunction::Shl || f.function == MapFunction::Shr || f.function == MapFunction::Pow))
      near = ids(s, n, t == DType::Bool ? 2 : 40);
  }
  const auto size = size_t(info(t).bytes);
  const auto values = reference::decode(s, wide.dense.data()).values;
  for (size_t i = 0; i < size_t(count); i++)
    if (i % 2 || (has(kFloats, t) && !has_map_reference(f.function, values[i])))
      std::memcpy(&wide.dense[i * size], &near.dense[i * size], size);
  return laid_out(wide, how);
}

std::vector<Case> map_cases(DType t) {
  std::vector<Case> all;
  Numbers n = numbers_for(OpKind::Map, t);
  size_t next = 0;
  auto add = [&](const MapFacts& f, int64_t count, Lies a, Lies b) {
    OpParams p;
    p.i[0] = int64_t(f.function);
    p.f[0] = f.numbers ? 0.7 : 0, p.f[1] = f.numbers > 1 ? -1.25 : 0;
    std::vector<CaseInput> in = {arguments(f, t, count, n, false, a)};
    if (f.inputs == 2) in.push_back(arguments(f, t, count, n, true, b));
    all.push_back(tensor_case(
        OpKind::Map, t, format("{} n={} {} {}", f.name, count, name_of(a), f.inputs == 2 ? name_of(b) : ""),
        std::move(in), p));
  };
  auto add_number = [&](const MapFacts& f, Operands which) {
    OpParams p;
    p.i[0] = int64_t(f.function), p.i[1] = int64_t(which), p.i[2] = 3, p.f[0] = 2.6;
    all.push_back(
        tensor_case(OpKind::Map, t,
                    format("{} of a number {}", f.name, which == Operands::NumberFirst ? "first" : "second"),
                    {arguments(f, t, 21, n, which == Operands::NumberFirst, nth(kViews, next++))}, p));
  };
  for (const MapFacts& f : kMaps) {
    if (!has(formats_of(f), t)) continue;
    add(f, 199, nth(kViews, next), nth(kViews, 3 * next + 2)), next++;
    if (f.inputs < 2) continue;
    // Others are read into the format of the arithmetic: there one place of the number is enough.
    const bool own = computed_in(t) == t, first = next % 2;
    if (own || first) add_number(f, Operands::NumberFirst);
    if (own || !first) add_number(f, Operands::NumberSecond);
  }
  // Sizes around those of vectors and of parts, and every view.
  const MapFacts& f = *map_facts(t == DType::Bool ? MapFunction::Xor : MapFunction::Sub);
  for (int64_t count : {1, 3, 4, 5, 15, 16, 17, 1023, 1025, 2049}) add(f, count, Lies::Dense, Lies::Dense);
  for (size_t i = 0; i < std::size(kViews); i++) add(f, 1027, nth(kViews, i), nth(kViews, 3 * i + 1));
  return all;
}

}  // namespace

constinit const OpDef Map = {.inputs = {{"a", Role::Whole}, {"b", Role::Whole}},
                             .floats = {"number", "second"},
                             .integers = {"function", "operands", "integer"},
                             .operations = 10,
                             .shape = shape_of_map};
constinit const OpCheck MapCheck = {
    .reference = map_of_numbers,
    // Of f64 the reference has no wider type: its own error is in the units of put_float().
    .tolerance =
        [](std::span<const Shape> in) { return in[0].type == DType::F64 ? 0x1p-53 : one_rounding(in); },
    .cases = map_cases};

}  // namespace gimbal::ops
