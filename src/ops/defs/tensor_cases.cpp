// hot: every number of a case
#include "ops/defs/tensor_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/quant_encode.h"

namespace gimbal::ops {
namespace {

// Rounds a number once into a format of floats.
void set_float(DType t, std::byte* at, double v) {
  const double near = rounded(t, v);
  if (t == DType::F64) {
    std::memcpy(at, &near, sizeof near);
  } else if (info(t).bytes > 1) {
    const auto f = float(near);
    encode(t, &f, 1, at);
  } else {  // the code of this number: there are few
    for (int code = 0; code < 256; code++) {
      const double other = small_float(t, uint8_t(code));
      const bool same = other == near && std::signbit(other) == std::signbit(near);
      if (same || (std::isnan(near) && std::isnan(other))) *at = std::byte(code);
    }
  }
}
void set_whole(DType t, std::byte* at, int64_t v) {
  const int64_t low = wrapped(t, v);
  std::memcpy(at, &low, info(t).bytes);
}

double odd_float(DType t, Numbers& n) {
  const FloatFormat f = float_format(t);
  const double tiny = std::ldexp(1.0, f.least - f.digits + 1),
               all[] = {0, INFINITY, NAN, tiny, 3 * tiny, std::ldexp(1.0, f.least), 1e-38, f.largest, 1};
  const double v = all[n.below(int(std::size(all)))];
  return n.below(2) ? v : -v;
}
// Of any exponent; whole numbers and their halves are as frequent.
double wide_float(DType t, Numbers& n) {
  const FloatFormat f = float_format(t);
  const int kind = n.below(6), most = std::ilogb(f.largest);
  if (kind == 0) return odd_float(t, n);
  const double digits = n.below(2) ? n.normal() : double(n.below(2000) - 1000) / 2;
  if (kind < 4) return digits * std::ldexp(1.0, n.below(66));
  return digits * std::ldexp(1.0, n.below(most - f.least) + f.least);
}

double float_of(DType t, Numbers& n, Fill fill) {
  if (fill == Fill::Normal) return n.normal();
  if (fill == Fill::Wide) return wide_float(t, n);
  return n.below(3) ? n.below(5) - 2 : odd_float(t, n);
}
int64_t whole_of(Numbers& n, Fill fill) {
  if (fill == Fill::Normal) return n.below(201) - 100;
  if (fill == Fill::Few) return n.below(5) - 2;
  const auto bits = int64_t(n.next());
  const int64_t ends[] = {0, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  return n.below(8) ? bits >> n.below(64) : ends[n.below(3)];
}

}  // namespace

const char* name_of(Lies how) {
  constexpr const char* kNames[] = {"dense",   "offset",   "turned",       "flipped",
                                    "stepped", "repeated", "repeated_rows"};
  return kNames[int(how)];
}

CaseInput laid_out(const CaseInput& dense, Lies how) {
  if (how == Lies::Dense) return dense;
  const Shape& s = dense.shape;
  CaseInput v{s, {}, std::vector<int64_t>(size_t(s.rank)), how == Lies::Offset ? 3 : 1};
  int64_t reach = 1;  // elements of memory that a dim steps over
  for (int i = 0; i < s.rank; i++) {
    const int d = how == Lies::Turned ? s.rank - 1 - i : i;
    int64_t& stride = v.stride[size_t(d)];
    stride = reach;
    if (how == Lies::Stepped && d == 0) stride = 2;
    const bool repeats = (how == Lies::Repeated && d == 0) || (how == Lies::RepeatedRows && d + 1 == s.rank);
    if (repeats) stride = 0;
    else reach = stride * s.dim[d] + (how == Lies::Stepped && d == 0 ? 1 : 0);
    if (how == Lies::Flipped) v.offset += stride * (s.dim[d] - 1), stride = -stride;
  }
  const auto size = size_t(info(s.type).bytes);
  v.dense.assign(size_t(reach + (how == Lies::Offset ? 5 : 3)) * size, std::byte(0xff));
  size_t from = 0;
  for (int64_t place : places_of(v))
    std::memcpy(&v.dense[size * size_t(place)], &dense.dense[size * from++], size);
  return v;
}

CaseInput numbers(const Shape& s, Numbers& n, Fill fill, Lies how) {
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes()))};
  const int size = info(s.type).bytes;
  for (int64_t i = 0; i < s.count(); i++) {
    std::byte* const at = &in.dense[size_t(i * size)];
    if (is_float_format(s.type)) set_float(s.type, at, float_of(s.type, n, fill));
    else set_whole(s.type, at, whole_of(n, fill));
  }
  return laid_out(in, how);
}

CaseInput numbers_of(const Shape& s, const std::vector<double>& v, Lies how) {
  CaseInput in{s, std::vector<std::byte>(size_t(s.bytes()))};
  for (size_t i = 0; i < v.size(); i++) {
    std::byte* const at = &in.dense[i * info(s.type).bytes];
    if (is_float_format(s.type)) set_float(s.type, at, v[i]);
    else set_whole(s.type, at, int64_t(v[i]));
  }
  return laid_out(in, how);
}

CaseInput ids(const Shape& s, Numbers& n, int below, Lies how) {
  std::vector<double> v(size_t(s.count()));
  for (double& id : v) id = n.below(below);
  return numbers_of(s, v, how);
}

Case tensor_case(OpKind kind, DType named, const std::string& text, std::vector<CaseInput> inputs,
                 const OpParams& params) {
  return {case_name(kind, named, text), kind, params, std::move(inputs)};
}

}  // namespace gimbal::ops
