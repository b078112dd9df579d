// Linear algebra over the last two dims of f32 and f64 tensors, in a fixed order: the same bits on every
// instruction set and for any number of threads (docs/tensors.md).
#pragma once
#include "gimbal/tensor.h"

namespace gimbal::v1 {

struct Triangle {
  bool upper = false;          // else lower; the other triangle is not read
  bool unit_diagonal = false;  // taken as 1, and not read
};
// x with a x = b: a [..., n, n], b [..., n, m], or [n] if a has two dims; outer dims repeat as in matmul(). A
// diagonal value of 0 gives infinities and NaN.
Tensor solve_triangular(const Tensor& a, const Tensor& b, Triangle = {});

// l, lower, with l l^T = a, or its transposed if `upper`: a [..., n, n], symmetric; its lower triangle alone
// is read. Errors: Usage for a matrix that is not positive definite.
Tensor cholesky(const Tensor& a, bool upper = false);

// q [..., m, k] and r [..., k, n] with q r = a: the columns of q have length 1 and right angles, r is upper;
// k is the smaller of m and n. Signs are as the reflections leave them.
std::pair<Tensor, Tensor> qr(const Tensor& a);

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
