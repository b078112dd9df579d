// Rows of numbers: the sums of the tensor library's ops over them, with their running errors, and the sizes
// of their cases.
#pragma once
#include <algorithm>
#include <functional>

#include "ops/defs/running_error.h"
#include "ops/defs/tensor_cases.h"

namespace gimbal::ops {

inline bool rounds_apart(const reference::Call& c) { return c.in[0]->shape.type == DType::F64; }
inline void put(const reference::Call& c, size_t i, Rounded r) { c.put(i, r.v, r.e); }
// Rows of x from the first dim on.
inline size_t row_length(const reference::Call& c) { return size_t(c.in[0]->shape.dim[0]); }

// The values of a row, with sums and extremes.
struct Row {
  const double* x;
  size_t n;
  bool apart;

  Rounded at(size_t i) const { return {x[i], 0}; }
  Rounded sum() const {
    return sum_of(n, [&](size_t i) { return at(i); });
  }
  Rounded mean() const { return sum() / Rounded{double(n)}; }
  // About a middle whose own error may be all that is left of a difference: its square counts, too.
  Rounded squares(Rounded middle) const {
    const auto distance = [&](size_t i) { return at(i) - middle; };
    Rounded sum = sum_of_squares(n, apart, distance);
    for (size_t i = 0; i < n; i++) sum.e += std::pow(distance(i).e, 2) * kRounding;
    return sum;
  }
  Rounded product() const {
    const auto times = [](Rounded a, Rounded b) { return a * b; };
    return in_lanes(
        n, Rounded{1, 0}, [&](Rounded lane, size_t i) { return lane * at(i); }, times);
  }
  // A NaN is above and below all, -0 below +0; the first of equals.
  size_t extreme(bool largest) const {
    size_t best = 0;
    for (size_t i = 1; i < n && !std::isnan(x[best]); i++) {
      const double a = x[i], b = x[best];
      const bool above = a > b || (a == b && std::signbit(b) && !std::signbit(a));
      const bool below = a < b || (a == b && std::signbit(a) && !std::signbit(b));
      if (std::isnan(a) || (largest ? above : below)) best = i;
    }
    return best;
  }
};

using AddRows = std::function<void(const Shape&, Lies, Fill)>;
// Rows of many widths and views.
inline void for_row_shapes(DType t, const AddRows& add) {
  size_t next = size_t(t);
  for (int64_t width : {1, 2, 15, 16, 17, 33, 127})
    for (Fill fill : {Fill::Normal, Fill::Few}) add(Shape(t, {width, 3, 2}), nth(kViews, next++), fill);
  for (int64_t width : {1023, 1024, 1025, 2050}) add(Shape(t, {width}), nth(kViews, next++), Fill::Normal);
}

}  // namespace gimbal::ops
