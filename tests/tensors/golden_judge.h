// What is wrong with the results of a case of golden/tensors.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "tensors/golden_ops.h"

namespace gimbal::test {

inline uint64_t word_at(const std::string& bytes, size_t i, size_t size) {
  uint64_t w = 0;
  std::memcpy(&w, bytes.data() + i * size, size);
  return w;
}
inline double half_value(uint64_t bits, int mantissa, int bias) {
  const int exponent = int(bits >> mantissa) & ((1 << (15 - mantissa)) - 1),
            most = (1 << (15 - mantissa)) - 1;
  const double fraction = double(bits & ((1u << mantissa) - 1)), sign = bits >> 15 ? -1 : 1;
  if (exponent == most) return fraction != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias - mantissa)
                       : sign * std::ldexp(fraction + std::ldexp(1, mantissa), exponent - bias - mantissa);
}
inline double number_at(DType t, const std::string& bytes, size_t i) {
  if (t == DType::F16) return half_value(word_at(bytes, i, 2), 10, 15);
  if (t == DType::BF16) return half_value(word_at(bytes, i, 2), 7, 127);
  if (t == DType::F32) {
    const auto bits = uint32_t(word_at(bytes, i, 4));
    float f;
    std::memcpy(&f, &bits, 4);
    return double(f);
  }
  double d;
  const uint64_t bits = word_at(bytes, i, 8);
  std::memcpy(&d, &bits, 8);
  return d;
}
inline bool is_float(DType t) {
  return t == DType::F16 || t == DType::BF16 || t == DType::F32 || t == DType::F64;
}

// The unit in the last place of a value in f32 (f64), and for halves that of their own.
inline double ulp(double v, int mantissa, int least) {
  int exponent;
  std::frexp(v, &exponent);
  return std::ldexp(1, std::max(exponent - 1 - mantissa, least));
}
inline double allowed(const TensorCase& want, DType t, double exact, double got, size_t i,
                      const std::vector<float>& tolerances) {
  const double units = want["ulps"];
  double bound =
      units * (t == DType::F64 ? ulp(exact, 52, -1074) : ulp(exact, 23, -149)) + want.value("abs", 0.0);
  if (!tolerances.empty()) bound += double(tolerances[i]);
  if (t == DType::F16) bound += std::max(ulp(exact, 10, -24), ulp(got, 10, -24)) / 2;
  if (t == DType::BF16) bound += std::max(ulp(exact, 7, -133), ulp(got, 7, -133)) / 2;
  return bound;
}

// What is wrong with an output; empty: nothing.
inline std::string judge(const TensorCase& want, const Tensor& t) {
  if (!t.ok()) return "failed: " + t.error().message;
  if (name_of(t.dtype()) != want["dtype"].get<std::string>())
    return std::string("is of ") + name_of(t.dtype());
  if (t.dims() != dims_of(want["dims"])) return "has other dims: " + t.text();
  auto read = t.bytes();
  if (!read) return "cannot be read: " + read.error().message;
  const std::string got(reinterpret_cast<const char*>(read->data()), read->size());
  const auto n = size_t(t.count());
  if (n == 0) return "";
  const size_t size = got.size() / n;
  if (want.value("exact", false)) {
    const std::string bytes = base64_decode(want["b64"]);
    for (size_t i = 0; i < n; i++) {
      if (word_at(got, i, size) == word_at(bytes, i, size)) continue;
      if (is_float(t.dtype())) {
        const double a = number_at(t.dtype(), got, i), b = number_at(t.dtype(), bytes, i);
        if ((std::isnan(a) && std::isnan(b)) || (a == b && !want.value("zero_sign", true))) continue;
        return "value " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
      }
      if (t.dtype() == DType::F8_E4M3 && (word_at(got, i, 1) & 0x7f) == 0x7f &&
          (word_at(bytes, i, 1) & 0x7f) == 0x7f)
        continue;
      if (t.dtype() == DType::F8_E5M2 && (word_at(got, i, 1) & 0x7f) > 0x7c &&
          (word_at(bytes, i, 1) & 0x7f) > 0x7c)
        continue;
      return "value " + std::to_string(i) + " has the bits " + std::to_string(word_at(got, i, size)) +
             ", expected " + std::to_string(word_at(bytes, i, size));
    }
    return "";
  }
  const std::string exact = base64_decode(want["f64"]);
  const std::vector<float> tolerances =
      want.contains("tol") ? base64_floats(want["tol"]) : std::vector<float>();
  for (size_t i = 0; i < n; i++) {
    const double a = number_at(t.dtype(), got, i), b = number_at(DType::F64, exact, i);
    if (std::isnan(a) || std::isnan(b) ? std::isnan(a) && std::isnan(b) : a == b) continue;
    if (std::isinf(a) &&
        std::isfinite(b)) {  // too large for the format: infinity is right from half a step above the largest
      const double most = t.dtype() == DType::F16   ? 65520
                          : t.dtype() == DType::F64 ? INFINITY
                                                    : 0x1.ffffffp127;
      if (std::fabs(b) >= most * (1 - 1e-6)) continue;
    }
    const double bound = allowed(want, t.dtype(), b, a, i, tolerances);
    if (!(std::fabs(a - b) <= bound))
      return "value " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b) +
             ": " + std::to_string(std::fabs(a - b) / bound) + " times the error allowed";
  }
  return "";
}

inline std::string views_wrong(const TensorCase& want, const Tensor& t) {
  if (!want.value("view", false) || !t.ok()) return "";
  const TensorCase& strides = want["strides"];
  for (size_t i = 0; i < strides.size(); i++)
    if (!strides[i].is_null() && strides[i].get<int64_t>() != t.strides()[i])
      return "stride " + std::to_string(i) + " differs";
  return t.count() > 0 && want["offset"].get<int64_t>() != t.offset() ? "the offset differs" : "";
}

inline std::string judge_case(const TensorCase& c, const TensorOutputs& got) {
  if (c.contains("error")) {
    const std::string wanted = c["error"];
    std::optional<Error> e = got.refused;
    for (const Tensor& t : got.out)
      if (!t.ok()) e = t.error();
    if (!e) return "gave " + got.out[0].text() + ", expected an error";
    return ("|" + wanted + "|").find("|" + e->reason + "|") != std::string::npos
               ? ""
               : "gave the reason '" + e->reason + "': " + e->message;
  }
  if (got.refused) return "was refused: " + got.refused->message;
  if (got.out.size() != c["out"].size()) return "has another number of outputs";
  for (size_t i = 0; i < got.out.size(); i++) {
    std::string wrong = judge(c["out"][i], got.out[i]);
    if (wrong.empty() && c["op"] == "views") wrong = views_wrong(c["out"][i], got.out[i]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace gimbal::test
