// Operations along dims: reductions, softmax, norms, cumulative sums, sorting.
#include <algorithm>
#include <numeric>

#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

using gimbal::Reduction;

constexpr const char* kNames[] = {"sum", "mean",   "var",    "prod", "min",
                                  "max", "argmin", "argmax", "any",  "all"};
static_assert(std::size(kNames) == size_t(Reduction::Count));

// The reduction of no values; nullopt: an error.
std::optional<Scalar> of_nothing(Reduction r) {
  switch (r) {
    case Reduction::Sum: return Scalar(0);
    case Reduction::Prod: return Scalar(1);
    case Reduction::Mean:
    case Reduction::Var: return Scalar(__builtin_nan(""));
    case Reduction::Any: return Scalar(0);
    case Reduction::All: return Scalar(1);
    default: return std::nullopt;
  }
}

Tensor reduce(const Tensor& t, Reduction which, const Axes& axes, bool keep) {
  if (!t.ok()) return t;
  const auto& queue = state_of(t).queue;
  const char* name = kNames[int(which)];
  const int rank = t.rank();
  std::vector<bool> reduced(size_t(rank), axes.empty());
  for (int a : axes) {
    const auto at = dim_of(rank, a);
    if (!at) return failed(queue, no_such_dim(name, t, a));
    if (reduced[size_t(*at)])
      return failed(queue,
                    index_error(format("{}: dimension {} of {} is named twice", name, *at, describe(t))));
    reduced[size_t(*at)] = true;
  }
  const auto type = gimbal::reduced_type(which, state_of(t).type);
  if (!type) return failed(queue, dtype_error(format("{} is not defined for {}", name, describe(t))));
  Axes order;
  Dims kept, shown;
  int64_t values = 1;
  for (int i = 0; i < rank; i++) {
    if (reduced[size_t(i)]) values *= t.dim(i);
    else order.push_back(i), kept.push_back(t.dim(i));
    if (!reduced[size_t(i)] || keep) shown.push_back(reduced[size_t(i)] ? 1 : t.dim(i));
  }
  const int n = rank - int(order.size());
  for (int i = 0; i < rank; i++)
    if (reduced[size_t(i)]) order.push_back(i);
  if (values == 0) {
    if (auto v = of_nothing(which)) return Tensor::full(shown, *v, to_public(*type), t.queue());
    return failed(queue, shape_error(format("{}: {} has no values", name, describe(t))));
  }
  if (t.count() == 0) return uninitialized(queue, *type, shown);
  gimbal::OpParams p;
  p.i[0] = int64_t(which), p.i[1] = n;
  const Tensor x = t.permute(order);
  return apply(gimbal::OpKind::Reduce, p, std::span(&x, 1)).reshape(shown);
}

// An op along dim `dim`, which its definition has as the fastest one.
Tensor along(const char* name, const Tensor& t, int dim, gimbal::OpKind kind, const gimbal::OpParams& p) {
  if (!t.ok()) return t;
  const auto at = dim_of(t.rank(), dim);
  if (!at) return failed(state_of(t).queue, no_such_dim(name, t, dim));
  if (t.count() == 0) {
    const bool places = kind == gimbal::OpKind::Order && p.i[1] == 0;
    return places ? uninitialized(state_of(t).queue, gimbal::DType::I32, t.dims()) : t;
  }
  const Tensor x = turned(t, *at);
  const Tensor y = apply(kind, p, std::span(&x, 1));
  return y.ok() ? turned(y, *at) : y;
}

Tensor not_floats(const char* name, const Tensor& t) {
  return failed(state_of(t).queue, dtype_error(format("{} is not defined for {}", name, describe(t)),
                                               "convert it first, with to(f32)"));
}

}  // namespace

Tensor Tensor::sum(const Axes& a, bool keep) const { return reduce(*this, Reduction::Sum, a, keep); }
Tensor Tensor::mean(const Axes& a, bool keep) const { return reduce(*this, Reduction::Mean, a, keep); }
Tensor Tensor::var(const Axes& a, bool keep) const { return reduce(*this, Reduction::Var, a, keep); }
Tensor Tensor::prod(const Axes& a, bool keep) const { return reduce(*this, Reduction::Prod, a, keep); }
Tensor Tensor::min(const Axes& a, bool keep) const { return reduce(*this, Reduction::Min, a, keep); }
Tensor Tensor::max(const Axes& a, bool keep) const { return reduce(*this, Reduction::Max, a, keep); }
Tensor Tensor::argmin(const Axes& a, bool keep) const { return reduce(*this, Reduction::ArgMin, a, keep); }
Tensor Tensor::argmax(const Axes& a, bool keep) const { return reduce(*this, Reduction::ArgMax, a, keep); }
Tensor Tensor::any(const Axes& a, bool keep) const { return reduce(*this, Reduction::Any, a, keep); }
Tensor Tensor::all(const Axes& a, bool keep) const { return reduce(*this, Reduction::All, a, keep); }

Tensor Tensor::softmax(int dim) const {
  if (ok() && !floats(*this)) return not_floats("softmax", *this);
  return along("softmax", *this, dim, gimbal::OpKind::Softmax, {});
}
Tensor Tensor::log_softmax(int dim) const {
  if (ok() && !floats(*this)) return not_floats("log_softmax", *this);
  gimbal::OpParams p;
  p.i[0] = 1;
  return along("log_softmax", *this, dim, gimbal::OpKind::Softmax, p);
}
Tensor Tensor::cumsum(int dim) const {
  if (!ok()) return *this;
  if (gimbal::has(gimbal::kStored, state_->type))
    return failed(state_->queue, dtype_error(format("cumsum is not defined for {}", describe(*this))));
  return along("cumsum", floats(*this) ? *this : to(DType::I64), dim, gimbal::OpKind::CumSum, {});
}

static Tensor ordered(const char* name, const Tensor& x, int dim, bool falling, bool values) {
  if (x.ok() && !gimbal::has(gimbal::kNumbers & ~gimbal::kStored, state_of(x).type))
    return failed(state_of(x).queue, dtype_error(format("{} is not defined for {}", name, describe(x))));
  gimbal::OpParams p;
  p.i[0] = falling, p.i[1] = values;
  return along(name, x, dim, gimbal::OpKind::Order, p);
}
Tensor Tensor::argsort(int dim, bool falling) const { return ordered("argsort", *this, dim, falling, false); }
Tensor Tensor::sort(int dim, bool falling) const { return ordered("sort", *this, dim, falling, true); }
std::pair<Tensor, Tensor> Tensor::top_k(int64_t k, int dim) const {
  if (!ok()) return {*this, *this};
  const auto at = dim_of(rank(), dim);
  if (!at || k < 0 || k > this->dim(*at)) {
    const Tensor bad =
        failed(state_->queue,
               !at ? no_such_dim("top_k", *this, dim)
                   : index_error(format("top_k: {} of {}: dimension {} has less", k, describe(*this), *at)));
    return {bad, bad};
  }
  const Tensor places = argsort(*at, true).narrow(*at, 0, k).contiguous();
  return {places.ok() ? gather(places, *at) : places, places};
}

static Tensor normalized(const char* name, const Tensor& x, const Tensor* weight, const Tensor* bias,
                         double epsilon, bool less_mean) {
  std::vector<Tensor> in = {x};
  if (!x.ok()) return x;
  if (!floats(x)) return not_floats(name, x);
  const int64_t n = x.rank() ? x.dim(-1) : 0;
  if (x.rank() == 0)
    return failed(state_of(x).queue, shape_error(format("{}: {} has no dimension", name, describe(x))));
  if (!weight && bias)
    return failed(state_of(x).queue,
                  Error{Code::Usage, format("{}: a bias needs a weight", name), "", "", "", "", "", {}});
  for (const Tensor* t : {weight, bias}) {
    if (!t) continue;
    if (!t->ok()) return *t;
    if (state_of(*t).type != state_of(x).type)
      return failed(state_of(x).queue,
                    dtype_error(format("{}: {} with {}", name, describe(x), describe(*t))));
    if (t->dims() != Dims{n})
      return failed(state_of(x).queue, shape_error(format("{}: {} with {}: expected one value for each of {}",
                                                          name, describe(x), describe(*t), n)));
    in.push_back(*t);
  }
  if (x.count() == 0) return x;
  gimbal::OpParams p;
  p.f[0] = epsilon, p.i[0] = less_mean;
  return apply(gimbal::OpKind::Normalize, p, in);
}
Tensor layer_norm(const Tensor& x, const Tensor* weight, const Tensor* bias, double epsilon) {
  return normalized("layer_norm", x, weight, bias, epsilon, true);
}
Tensor rms_norm(const Tensor& x, const Tensor* weight, double epsilon) {
  return normalized("rms_norm", x, weight, nullptr, epsilon, false);
}

}  // namespace gimbal::v1
