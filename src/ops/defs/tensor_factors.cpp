// Linear algebra of the tensor library, in a fixed order. Each value is reduced by its products in rising
// order of the row or column that they come from, one fused multiply-add each (f64: product and sum rounded
// apart). solve_triangular then divides by the diagonal. cholesky takes the root of each pivot, and gives NaN
// from the first one on that is not above 0. qr reflects column after column (Householder): the sum of
// squares below the diagonal in rising order, beta = -sign(alpha) * sqrt(alpha^2 + squares), v = x / (alpha -
// beta), factor = 2 / (1 + v^T v); a column that is 0 there stays as it is.
#include "ops/defs/running_error.h"
#include "ops/defs/tensor_cases.h"

namespace gimbal::ops {
namespace {

bool computes(const Shape& s) { return s.type == DType::F32 || s.type == DType::F64; }
bool same_outer(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.dim + 2, a.dim + kMaxRank, b.dim + 2);
}

Result<Shape> shape_of_solve(const ShapeCall& c) {
  const Shape &a = c.in[0], &b = c.in[1];
  if (!computes(a) || a.type != b.type) return c.refuse("both must be f32, or both f64");
  if (a.rank < 2 || a.dim[0] != a.dim[1]) return c.refuse("a must be square");
  if (!same_outer(a, b) || b.dim[1] != a.dim[0]) return c.refuse("b must have as many rows as a");
  return b;
}
Result<Shape> shape_of_cholesky(const ShapeCall& c) {
  if (!computes(c.in[0])) return c.refuse("a must be f32 or f64");
  if (c.in[0].rank < 2 || c.in[0].dim[0] != c.in[0].dim[1]) return c.refuse("a must be square");
  return c.in[0];
}
Result<Shape> shape_of_qr(const ShapeCall& c) {
  if (!computes(c.in[0])) return c.refuse("a must be f32 or f64");
  if (c.in[0].rank < 2) return c.refuse("a must have rows and columns");
  Shape to = c.in[0];
  to.dim[0] = std::min(c.in[0].dim[0], c.in[0].dim[1]), to.dim[1] = c.in[0].dim[0] + c.in[0].dim[1];
  return to;
}

// ---- references. Errors of elements add up from step to step.
using Matrix = std::vector<Rounded>;
bool rounded_apart(const reference::Call& c) { return c.in[0]->shape.type == DType::F64; }
size_t matrices(const reference::Call& c, const Shape& of) {
  return c.computed / size_t(of.dim[0] * of.dim[1]);
}
void put_matrix(const reference::Call& c, size_t first, const Matrix& m) {
  for (size_t i = 0; i < m.size(); i++) c.put(first + i, m[i].v, m[i].e);
}

void solve(const reference::Call& c) {
  const auto m = size_t(c.out.shape.dim[0]), n = size_t(c.out.shape.dim[1]);
  const bool upper = c.params.i[0], unit = c.params.i[1];
  for (size_t batch = 0; batch < matrices(c, c.out.shape); batch++)
    for (size_t column = 0; column < m; column++) {
      const double *a = &c.x(0)[batch * n * n], *b = &c.x(1)[batch * n * m + column];
      Matrix x(n);
      for (size_t step = 0; step < n; step++) {
        const size_t i = upper ? n - 1 - step : step;
        Rounded rest{b[i * m]};
        for (size_t j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
          rest = fused({-a[i * n + j]}, x[j], rest, rounded_apart(c));
        x[i] = unit ? rest : rest / Rounded{a[i * n + i]};
        c.put(batch * n * m + i * m + column, x[i].v, x[i].e);
      }
    }
}

void cholesky(const reference::Call& c) {
  const auto n = size_t(c.out.shape.dim[0]);
  for (size_t batch = 0; batch < matrices(c, c.out.shape); batch++) {
    Matrix u(n * n);
    for (size_t i = 0; i < n; i++)
      for (size_t j = i; j < n; j++) u[i * n + j].v = c.x()[(batch * n + i) * n + j];
    for (size_t k = 0; k < n; k++) {
      Rounded& pivot = u[k * n + k];
      pivot = pivot.v > 0 ? root(pivot) : Rounded{NAN, 0};
      for (size_t j = k + 1; j < n; j++) u[k * n + j] = u[k * n + j] / pivot;
      for (size_t i = k + 1; i < n; i++)
        for (size_t j = i; j < n; j++)
          u[i * n + j] = fused(-u[k * n + i], u[k * n + j], u[i * n + j], rounded_apart(c));
    }
    put_matrix(c, batch * n * n, u);
  }
}

// Columns of a matrix of m rows, reflected by H = 1 - factor v v^T with v[j] = 1 and 0 before.
struct Reflection {
  size_t j;
  Matrix v;
  Rounded factor;
  bool apart;

  void apply(Matrix& column) const {
    Rounded w = column[j];
    for (size_t i = j + 1; i < v.size(); i++) w = fused(v[i], column[i], w, apart);
    w = factor * w;
    column[j] = column[j] - w;
    for (size_t i = j + 1; i < v.size(); i++) column[i] = fused(-w, v[i], column[i], apart);
  }
  // Of the unit vector of place j.
  Matrix of_unit() const {
    Matrix column(v.size());
    column[j] = Rounded{1} - factor;
    for (size_t i = j + 1; i < v.size(); i++) column[i] = -factor * v[i];
    return column;
  }
};
// Leaves `beta` at place j of the column, and 0 below.
Reflection reflection_of(const Matrix& column, size_t j, bool apart, Rounded& beta) {
  const auto squares = [&](const Matrix& v) {
    Rounded sum;
    for (size_t i = j + 1; i < v.size(); i++) sum = fused(v[i], v[i], sum, apart);
    return sum;
  };
  Reflection h{j, column, {}, apart};
  const Rounded below = squares(column), alpha = column[j];
  beta = alpha;
  if (below.v == 0) return h;
  const Rounded length = root(fused(alpha, alpha, below, apart));
  beta = alpha.v > 0 ? -length : length;
  const Rounded first = alpha - beta;
  for (size_t i = j + 1; i < column.size(); i++) h.v[i] = column[i] / first;
  h.factor = Rounded{2} / (Rounded{1} + squares(h.v));
  return h;
}

void qr(const reference::Call& c) {
  const Shape& a = c.in[0]->shape;
  const auto n = size_t(a.dim[0]), m = size_t(a.dim[1]), k = size_t(c.out.shape.dim[0]);
  for (size_t batch = 0; batch < matrices(c, c.out.shape); batch++) {
    std::vector<Matrix> columns(n, Matrix(m)), q(k, Matrix(m));
    for (size_t i = 0; i < m * n; i++) columns[i % n][i / n].v = c.x()[batch * m * n + i];
    std::vector<Reflection> all;
    for (size_t j = 0; j < k; j++) {
      Rounded beta;
      all.push_back(reflection_of(columns[j], j, rounded_apart(c), beta));
      for (size_t i = j + 1; i < m; i++) columns[j][i] = {};
      columns[j][j] = beta;
      for (size_t i = j + 1; i < n; i++) all[j].apply(columns[i]);
    }
    for (size_t i = 0; i < k; i++) {
      q[i] = all[i].of_unit();
      for (size_t j = i; j-- > 0;) all[j].apply(q[i]);
    }
    const size_t first = batch * k * (m + n);
    const auto give = [&](size_t at, Rounded r) { c.put(first + at, r.v, r.e); };
    for (size_t i = 0; i < m * k; i++) give(i, q[i % k][i / k]);
    for (size_t i = 0; i < n * k; i++) give(m * k + i, columns[i / k][i % k]);
  }
}

// ---- cases: small ones, whose errors stay small, and wide ones around the columns that a kernel takes at
// once
bool factors(DType t) { return t == DType::F32 || t == DType::F64; }

std::vector<Case> solve_cases(DType t) {
  std::vector<Case> all;
  if (!factors(t)) return all;
  Numbers n = numbers_for(OpKind::SolveTriangular, t);
  for (const auto& [size, columns] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {1, 1}, {2, 17}, {5, 3}, {16, 15}, {17, 2}, {4, 259}})
    for (int form = 0; form < 4; form++) {
      OpParams p;
      p.i[0] = form % 2, p.i[1] = form / 2;
      // Diagonals that outweigh the rest of their rows, which is not 0 on the other side either.
      const Shape a(t, {size, size, 2});
      std::vector<double> v(size_t(a.count()));
      for (size_t i = 0; i < v.size(); i++) {
        const bool diagonal = i % size_t(size) == i / size_t(size) % size_t(size);
        v[i] = diagonal ? 1 + std::fabs(n.normal()) : n.normal() / double(size);
      }
      const Lies how = nth(kViews, all.size()), other = nth(kViews, 3 * all.size() + 1);
      // Repeated along a row, a has no diagonal of its own.
      all.push_back(tensor_case(OpKind::SolveTriangular, t,
                                format("{} x {} {} {} {}{}", size, columns, p.i[0] ? "upper" : "lower",
                                       name_of(how), name_of(other), p.i[1] ? " unit" : ""),
                                {numbers_of(a, v, how == Lies::Repeated ? Lies::Turned : how),
                                 numbers(Shape(t, {columns, size, 2}), n, Fill::Normal, other)},
                                p));
    }
  return all;
}

std::vector<Case> cholesky_cases(DType t) {
  std::vector<Case> all;
  if (!factors(t)) return all;
  Numbers n = numbers_for(OpKind::Cholesky, t);
  for (int64_t size : {1, 2, 3, 7, 16, 17, 33})
    for (Lies how : {Lies::Dense, Lies::Turned, Lies::Flipped, Lies::RepeatedRows}) {
      // Positive definite, but for the last one of three; numbers below the diagonal are not read.
      const Shape a(t, {size, size, 3});
      std::vector<double> v(size_t(a.count()));
      for (size_t i = 0; i < v.size(); i++) {
        const size_t column = i % size_t(size), row = i / size_t(size) % size_t(size),
                     batch = i / size_t(size * size);
        v[i] = row == column ? 2 + std::fabs(n.normal()) : column < row ? NAN : n.normal() / double(size);
        if (batch == 2 && row == column && row == size_t(size) / 2)
          v[i] = size == 3 ? -1 : size == 7 ? 0 : v[i];
      }
      all.push_back(
          tensor_case(OpKind::Cholesky, t, format("{} {}", size, name_of(how)), {numbers_of(a, v, how)}));
    }
  return all;
}

std::vector<Case> qr_cases(DType t) {
  std::vector<Case> all;
  if (!factors(t)) return all;
  Numbers n = numbers_for(OpKind::Qr, t);
  for (const auto& [columns, rows] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 5}, {5, 1}, {2, 2}, {3, 4}, {4, 3}, {3, 300}, {300, 3}, {6, 6}})
    for (int i = 0; i < 2; i++) {
      const Lies how = nth(kViews, all.size());
      // Of equal columns, the second one is 0 below the diagonal: not exactly.
      all.push_back(tensor_case(OpKind::Qr, t, format("{} x {} {}", rows, columns, name_of(how)),
                                {numbers(Shape(t, {columns, rows, 2}), n, Fill::Normal,
                                         how == Lies::Repeated ? Lies::Stepped : how)}));
    }
  // A column that is 0 below the diagonal stays as it is.
  all.push_back(
      tensor_case(OpKind::Qr, t, "upper", {numbers_of(Shape(t, {3, 3}), {2, 1, 5, 0, -3, 4, 0, 0, 7})}));
  return all;
}

}  // namespace

constinit const OpDef SolveTriangular = {
    .inputs = {{"a", Role::Whole}, {"b", Role::Whole}},
    .integers = {"upper", "unit_diagonal"},
    .shape = shape_of_solve,
    .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
      c.operations = double(in[0].dim[0]) * double(out.count());
    }};
constinit const OpDef Cholesky = {.inputs = {{"a", Role::Whole}},
                                  .shape = shape_of_cholesky,
                                  .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                                    c.operations = double(in[0].dim[0]) * double(out.count()) / 3;
                                  }};
constinit const OpDef Qr = {.inputs = {{"a", Role::Whole}},
                            .shape = shape_of_qr,
                            .cost = [](Cost& c, std::span<const Shape> in, const Shape& out, int64_t) {
                              c.operations = 4 * double(out.dim[0]) * double(in[0].count());
                            }};

constinit const OpCheck SolveTriangularCheck = {
    .reference = solve, .tolerance = one_rounding, .cases = solve_cases};
constinit const OpCheck CholeskyCheck = {
    .reference = cholesky, .tolerance = one_rounding, .cases = cholesky_cases};
constinit const OpCheck QrCheck = {.reference = qr, .tolerance = one_rounding, .cases = qr_cases};

}  // namespace gimbal::ops
