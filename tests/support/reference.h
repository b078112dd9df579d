// Running the reference on tensors of a few numbers.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/reference.h"

namespace gimbal::reference {

inline Tensor floats(std::initializer_list<int64_t> dims, std::vector<double> v) {
  Tensor t{Shape(DType::F32, dims), std::move(v)};
  EXPECT_EQ(t.values.size(), size_t(t.shape.count()));
  return t;
}
inline Tensor ints(std::initializer_list<int64_t> dims, std::vector<double> v) {
  Tensor t = floats(dims, std::move(v));
  t.shape.type = DType::I32;
  return t;
}
inline std::vector<double> wave(size_t n, double step) {
  std::vector<double> v(n);
  for (size_t i = 0; i < n; i++) v[i] = std::sin(step * double(i) + 0.3);
  return v;
}

struct Ran {
  Tensor out;
  std::vector<double> magnitude;
};
inline constexpr double kOld = -77;  // what rows that are not computed must keep

inline Ran run_op(OpKind kind, const OpParams& p, std::vector<const Tensor*> in, Shape out, int rows) {
  Ran r{{out, std::vector<double>(size_t(out.count()), kOld)}, {}};
  run(kind, p, in, r.out, rows, &r.magnitude);
  EXPECT_EQ(r.magnitude.size(), r.out.values.size());
  return r;
}

inline void near(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], want[i], tolerance) << "value " << i;
}

}  // namespace gimbal::reference
