// Linear algebra: triangular solutions, Cholesky, QR.
#include <algorithm>

#include "tensors/state.h"

#include <gimbal/linear_algebra.h>

namespace gimbal::v1 {
namespace {

std::optional<Error> no_matrix(const char* name, const Tensor& a, bool square) {
  if (state_of(a).type != gimbal::DType::F32 && state_of(a).type != gimbal::DType::F64)
    return dtype_error(format("{} is not defined for {}", name, describe(a)),
                       "convert it first, with to(f32)");
  if (a.rank() < 2) return shape_error(format("{}: {} is no matrix", name, describe(a)));
  if (square && a.dim(-1) != a.dim(-2)) return shape_error(format("{}: {} is not square", name, describe(a)));
  return std::nullopt;
}

}  // namespace

Tensor solve_triangular(const Tensor& a, const Tensor& b, Triangle how) {
  const Tensor* all[] = {&a, &b};
  if (auto bad = unusable(all)) return *bad;
  constexpr const char* kName = "solve_triangular";
  if (auto e = no_matrix(kName, a, true)) return refuse(a, *e);
  if (state_of(a).type != state_of(b).type)
    return refuse(a,
                  dtype_error(format("{}: {} with {}: expected one format", kName, describe(a), describe(b)),
                              "convert with to()"));
  if (b.rank() == 1 && a.rank() == 2) {
    const Tensor x = solve_triangular(a, b.unsqueeze(1), how);
    return x.ok() ? x.squeeze(1) : x;
  }
  const bool fits = b.rank() >= 2 && b.dim(-2) == a.dim(-1);
  gimbal::Layout outer_a = state_of(a).layout, outer_b = state_of(b).layout;
  outer_a.rank -= 2, outer_b.rank -= 2;
  const auto outer = fits ? gimbal::broadcast_dims(outer_a, outer_b) : std::nullopt;
  if (!outer)
    return refuse(a, shape_error(format("{}: {} with {}: expected as many rows as the matrix has", kName,
                                        describe(a), describe(b))));
  Dims to_a(outer->dims().begin(), outer->dims().end()), to_b = to_a;
  to_a.insert(to_a.end(), {a.dim(-2), a.dim(-1)}), to_b.insert(to_b.end(), {b.dim(-2), b.dim(-1)});
  const Tensor in[] = {a.broadcast_to(to_a), b.broadcast_to(to_b)};
  if (in[1].count() == 0) return Tensor::zeros(to_b, b.dtype(), b.queue());
  gimbal::OpParams p;
  p.i[0] = how.upper, p.i[1] = how.unit_diagonal;
  return apply(gimbal::OpKind::SolveTriangular, p, in);
}

Tensor cholesky(const Tensor& a, bool upper) {
  if (!a.ok()) return a;
  if (auto e = no_matrix("cholesky", a, true)) return refuse(a, *e);
  if (a.count() == 0) return a;
  const Tensor rows = a.t();  // the kernel reads the upper triangle
  const Tensor u = apply(gimbal::OpKind::Cholesky, {}, std::span(&rows, 1));
  auto bad = refused_by(u.map("is_nan").sum({-2, -1}), [name = describe(a)](std::span<const int64_t> n) {
    const auto first = std::find_if(n.begin(), n.end(), [](int64_t count) { return count > 0; });
    if (first == n.end()) return std::optional<Error>();
    return std::optional(
        Error{Code::Usage,
              format("cholesky: {} is not positive definite{}", name,
                     n.size() > 1 ? format(" (matrix {})", first - n.begin()) : std::string()),
              "",
              "not-positive-definite",
              "",
              "",
              "",
              {}});
  });
  if (bad) return *bad;
  return upper ? u : u.t();
}

std::pair<Tensor, Tensor> qr(const Tensor& a) {
  if (!a.ok()) return {a, a};
  if (auto e = no_matrix("qr", a, false)) {
    const Tensor bad = refuse(a, *e);
    return {bad, bad};
  }
  const int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
  if (a.count() == 0) {
    Dims q = a.dims(), r = a.dims();
    q.back() = k, r[r.size() - 2] = k;
    return {Tensor::zeros(q, a.dtype(), a.queue()), Tensor::zeros(r, a.dtype(), a.queue())};
  }
  const Tensor y = apply(gimbal::OpKind::Qr, {}, std::span(&a, 1));
  if (!y.ok()) return {y, y};
  return {y.narrow(-2, 0, m), y.narrow(-2, m, n).t()};
}

}  // namespace gimbal::v1
