// Moving: copies, fills, gathers and scatters, and functions made of them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensors/recording.h"

namespace gimbal::v1 {

std::optional<Error> cannot_be_written(const Tensor& t) {
  if (gimbal::info(state_of(t).type).block > 1)
    return dtype_error(format("{} is stored in blocks, which nothing writes into", describe(t)));
  if (t.is_read_only())
    return Error{Code::Usage,
                 format("{} reads the caller's memory in place, which is not written", describe(t)),
                 "copy() it first",
                 "",
                 "",
                 "",
                 "",
                 {}};
  if (const Recording* r = Recording::active(state_of(t).queue); r && !r->owns(t))
    return Error{
        Code::Usage,
        format("{} comes from outside of the function that is recorded, which only reads it", describe(t)),
        "copy() it first",
        "",
        "",
        "",
        "",
        {}};
  if (gimbal::overlaps_itself(state_of(t).layout))
    return Error{Code::Usage,
                 format("{}: several elements of this view are one in memory", describe(t)),
                 "write to a copy",
                 reason::kShape,
                 "",
                 "",
                 "",
                 {}};
  return std::nullopt;
}

static Error bad_id(const char* name, const std::string& ids, int64_t count, int64_t place, int64_t value,
                    int64_t below, int dim) {
  return index_error(format("{}: the id {} at place {} of {} is not in dimension {}, which has {}{}", name,
                            value, place, ids, dim, below,
                            count > 1 ? format("; so are {} more", count - 1) : std::string()));
}
std::optional<Tensor> bad_ids(const char* name, const Tensor& ids, int64_t below, int dim) {
  gimbal::OpParams p;
  p.i[0] = below;
  const Tensor found = apply(gimbal::OpKind::CheckIds, p, std::span(&ids, 1));
  return refused_by(found, [name, ids = describe(ids), below, dim](std::span<const int64_t> v) {
    return v[0] == 0 ? std::nullopt : std::optional(bad_id(name, ids, v[0], v[1], v[2], below, dim));
  });
}

namespace {

Status assign(const Tensor& to, const Tensor& from) {
  if (to.count() == 0) return Done{};
  const Tensor in[] = {to, from};
  const Tensor y = apply(gimbal::OpKind::Assign, {}, in);
  if (!y.ok()) return y.error();
  return Done{};
}

// What gather and scatter share: the dims of x and ids agree but for `at`.
std::optional<Error> ids_misfit(const char* name, const Tensor& x, const Tensor& ids, int at) {
  if (!gimbal::has(gimbal::kIntegers, state_of(ids).type))
    return dtype_error(format("{}: the ids are {}, expected integers", name, describe(ids)));
  bool fit = ids.rank() == x.rank();
  for (int i = 0; fit && i < x.rank(); i++) fit = i == at || ids.dim(i) == x.dim(i);
  if (fit) return std::nullopt;
  return shape_error(format("{}: ids {} for {}: their dimensions must be the same, but for dimension {}",
                            name, describe(ids), describe(x), at));
}

Tensor scatter_into(const char* name, const Tensor& x, const Tensor& ids, const Tensor& source, int dim,
                    bool add) {
  const Tensor* all[] = {&x, &ids, &source};
  if (auto bad = unusable(all)) return *bad;
  const auto at = dim_of(x.rank(), dim);
  if (!at) return refuse(x, no_such_dim(name, x, dim));
  if (state_of(x).type != state_of(source).type)
    return refuse(x, dtype_error(format("{}: {} into {}", name, describe(source), describe(x)),
                                 "convert one of them with to()"));
  if (add && !gimbal::has(gimbal::kFloats | gimbal::kIntegers, state_of(x).type))
    return refuse(x, dtype_error(format("{} is not defined for {}", name, describe(x))));
  if (auto e = ids_misfit(name, x, ids, *at)) return refuse(x, *e);
  if (ids.dims() != source.dims())
    return refuse(x, shape_error(format("{}: ids {} for {}: expected the same dimensions", name,
                                        describe(ids), describe(source))));
  const Tensor to = x.copy();
  if (!to.ok() || ids.count() == 0) return to;
  if (auto bad = bad_ids(name, ids, x.dim(*at), *at)) return *bad;
  gimbal::OpParams p;
  p.i[0] = x.rank() - 1 - *at, p.i[1] = add;
  const Tensor in[] = {to, ids, source};
  return apply(gimbal::OpKind::Scatter, p, in);
}

// Ids of one dim, repeated along the others of `dims`.
Tensor spread(const Tensor& ids, const Dims& dims, int at) {
  Dims to(dims.size(), 1), all = dims;
  to[size_t(at)] = all[size_t(at)] = ids.count();
  return ids.reshape(to).broadcast_to(all);
}

}  // namespace

Tensor Tensor::copy() const {
  if (!ok()) return *this;
  if (gimbal::info(state_->type).block > 1) {
    auto blocks = bytes();
    return blocks ? from_bytes(*blocks, dims(), dtype(), queue()) : refuse(*this, blocks.error());
  }
  if (count() == 0) return uninitialized(state_->queue, state_->type, dims());
  gimbal::OpParams p;
  p.i[0] = int64_t(state_->type);
  return apply(gimbal::OpKind::Cast, p, std::span(this, 1));
}
Tensor Tensor::contiguous() const { return !ok() || is_contiguous() ? *this : copy(); }

Tensor Tensor::to(const Queue& q) const {
  if (!ok() || TensorAccess::state(q) == state_->queue) return *this;
  auto b = bytes();
  if (!b) return refuse(*this, b.error());
  return from_bytes(*b, dims(), dtype(), q);
}

Status Tensor::fill_(Scalar v) const {
  if (!ok()) return error();
  if (auto e = cannot_be_written(*this)) return *e;
  const Tensor one = scalar_tensor(state_->queue, v, state_->type).broadcast_to(dims());
  if (!one.ok()) return one.error();
  return assign(*this, one);
}
Status Tensor::copy_(const Tensor& from) const {
  const Tensor* all[] = {this, &from};
  if (auto bad = unusable(all)) return bad->error();
  if (auto e = cannot_be_written(*this)) return *e;
  Tensor x = cast(from, state_->type).broadcast_to(dims());
  if (x.ok() && x.shares_memory_with(*this)) x = x.copy();  // read before anything is written
  if (!x.ok()) return x.error();
  return assign(*this, x);
}

Tensor scalar_tensor(const std::shared_ptr<Queue::State>& queue, Scalar v, gimbal::DType type) {
  const Unrecorded now;
  const Queue q = TensorAccess::queue(queue);
  const Tensor t =
      v.floating ? Tensor::from<double>({v.number}, {}, q) : Tensor::from<int64_t>({v.integer}, {}, q);
  return cast(t, type);
}

Tensor Tensor::full(const Dims& dims, Scalar v, DType type, const Queue& q) {
  const Tensor one = scalar_tensor(TensorAccess::state(q), v, own(type));
  if (auto why = gimbal::check_dims(dims))
    return refuse(one, shape_error(format("full: {}: {}", gimbal::to_string(dims), *why)));
  return one.broadcast_to(dims).copy();
}
Tensor Tensor::zeros(const Dims& dims, DType type, const Queue& q) { return full(dims, 0, type, q); }

Tensor Tensor::arange(Scalar begin, Scalar end, Scalar step, DType type, const Queue& q) {
  const auto& queue = TensorAccess::state(q);
  if (step.number == 0 || step.number != step.number)
    return failed(queue, Error{Code::Usage, "arange: a step of 0 leads nowhere", "", "", "", "", "", {}});
  const bool whole = !begin.floating && !end.floating && !step.floating;
  const double steps = whole ? 0 : std::ceil((end.number - begin.number) / step.number);
  int64_t n =
      whole ? (end.integer - begin.integer + step.integer - (step.integer > 0 ? 1 : -1)) / step.integer : 0;
  if (!whole) n = steps > 0 && steps < 1e15 ? int64_t(steps) : 0;
  n = std::max<int64_t>(n, 0);
  if (auto why = gimbal::check_dims(std::span(&n, 1))) return failed(queue, shape_error("arange: " + *why));
  if (whole) {
    std::vector<int64_t> v(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i++) v[size_t(i)] = begin.integer + i * step.integer;
    return from<int64_t>(v, {n}, q).to(type);
  }
  std::vector<double> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) v[size_t(i)] = begin.number + double(i) * step.number;
  return from<double>(v, {n}, q).to(type);
}

Tensor Tensor::eye(int64_t n, DType type, const Queue& q) {
  const Tensor t = zeros({n, n}, type, q);
  if (!t.ok() || n == 0) return t;
  gimbal::Layout diagonal;
  diagonal.rank = 1, diagonal.dim[0] = n, diagonal.stride[0] = n + 1;
  if (auto ok = view(t, diagonal).fill_(1); !ok) return refuse(t, ok.error());
  return t;
}

Tensor Tensor::gather(const Tensor& ids, int dim) const {
  const Tensor* all[] = {this, &ids};
  if (auto bad = unusable(all)) return *bad;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("gather", *this, dim));
  if (auto e = ids_misfit("gather", *this, ids, *at)) return refuse(*this, *e);
  if (ids.count() == 0) return uninitialized(state_->queue, state_->type, ids.dims());
  if (auto bad = bad_ids("gather", ids, this->dim(*at), *at)) return *bad;
  gimbal::OpParams p;
  p.i[0] = rank() - 1 - *at;
  const Tensor in[] = {*this, ids};
  return apply(gimbal::OpKind::Gather, p, in);
}
Tensor Tensor::index_select(const Tensor& ids, int dim) const {
  const Tensor* all[] = {this, &ids};
  if (auto bad = unusable(all)) return *bad;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("index_select", *this, dim));
  if (!gimbal::has(gimbal::kIntegers, state_of(ids).type))
    return refuse(*this,
                  dtype_error(format("index_select: the ids are {}, expected integers", describe(ids))));
  if (ids.rank() != 1)
    return refuse(*this,
                  shape_error(format("index_select: the ids are {}, expected one dimension", describe(ids))));
  return gather(spread(ids, dims(), *at), *at);
}
Tensor Tensor::scatter(const Tensor& ids, const Tensor& source, int dim) const {
  return scatter_into("scatter", *this, ids, source, dim, false);
}
Tensor Tensor::scatter_add(const Tensor& ids, const Tensor& source, int dim) const {
  return scatter_into("scatter_add", *this, ids, source, dim, true);
}
Tensor Tensor::index_add(const Tensor& ids, const Tensor& source, int dim) const {
  const Tensor* all[] = {this, &ids, &source};
  if (auto bad = unusable(all)) return *bad;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("index_add", *this, dim));
  if (ids.rank() != 1 || source.rank() != rank() || source.dim(*at) != ids.count())
    return refuse(*this, shape_error(format("index_add: {} with ids {} along dimension {} of {}",
                                            describe(source), describe(ids), *at, describe(*this))));
  return scatter_into("index_add", *this, spread(ids, source.dims(), *at), source, *at, true);
}

Tensor cat(std::span<const Tensor> all, int dim) {
  std::vector<const Tensor*> each;
  for (const Tensor& t : all) each.push_back(&t);
  if (auto bad = unusable(each)) return *bad;
  const Tensor& first = all[0];
  const auto at = dim_of(first.rank(), dim);
  if (!at) return refuse(first, no_such_dim("cat", first, dim));
  Dims dims = first.dims();
  dims[size_t(*at)] = 0;
  for (const Tensor& t : all) {
    if (state_of(t).type != state_of(first).type)
      return refuse(first, dtype_error(format("cat: {} with {}", describe(first), describe(t))));
    bool fit = t.rank() == first.rank();
    for (int i = 0; fit && i < t.rank(); i++) fit = i == *at || t.dim(i) == first.dim(i);
    if (!fit)
      return refuse(first, shape_error(format("cat: {} with {} along dimension {}", describe(first),
                                              describe(t), *at)));
    dims[size_t(*at)] += t.dim(*at);
  }
  const Tensor to = uninitialized(state_of(first).queue, state_of(first).type, dims);
  int64_t begin = 0;
  for (const Tensor& t : all) {
    if (!to.ok()) return to;
    if (t.dim(*at) == 0) continue;
    if (auto ok = to.narrow(*at, begin, t.dim(*at)).copy_(t); !ok) return refuse(first, ok.error());
    begin += t.dim(*at);
  }
  return to;
}
Tensor stack(std::span<const Tensor> all, int dim) {
  std::vector<Tensor> each;
  for (const Tensor& t : all) {
    if (t.ok() && all[0].ok() && t.dims() != all[0].dims())
      return refuse(t, shape_error(format("stack: {} with {}: expected the same dimensions", describe(all[0]),
                                          describe(t))));
    each.push_back(t.unsqueeze(dim));
  }
  const int at = all[0].ok() ? dim_of(all[0].rank() + 1, dim).value_or(0) : 0;
  return cat(each, at);
}

Tensor Tensor::pad(const std::vector<std::pair<int64_t, int64_t>>& pads, Scalar value) const {
  if (!ok()) return *this;
  if (int(pads.size()) != rank())
    return refuse(*this, shape_error(format("pad: {} has {} dimensions, found {} pairs", describe(*this),
                                            rank(), pads.size())));
  Dims to = dims();
  for (size_t i = 0; i < to.size(); i++) {
    if (pads[i].first < 0 || pads[i].second < 0)
      return refuse(*this, shape_error("pad: negative padding; use narrow"));
    to[i] += pads[i].first + pads[i].second;
  }
  const Tensor y = full(to, value, dtype(), queue());
  Tensor inner = y;
  for (size_t i = 0; i < to.size(); i++) inner = inner.narrow(int(i), pads[i].first, dim(int(i)));
  if (auto done = inner.copy_(*this); !done) return refuse(*this, done.error());
  return y;
}

Tensor Tensor::roll(int64_t shift, int dim) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("roll", *this, dim));
  const int64_t n = this->dim(*at);
  const int64_t by = n ? ((shift % n) + n) % n : 0;
  if (by == 0) return copy();
  const Tensor parts[] = {narrow(*at, n - by, by), narrow(*at, 0, n - by)};
  return cat(parts, *at);
}

Tensor Tensor::repeat(const Dims& times) const {
  if (!ok()) return *this;
  if (int(times.size()) < rank())
    return refuse(*this, shape_error(format("repeat: {} has {} dimensions, found {} numbers", describe(*this),
                                            rank(), times.size())));
  Tensor y = *this;
  while (y.ok() && y.rank() < int(times.size())) y = y.unsqueeze(0);
  for (size_t i = 0; i < times.size() && y.ok(); i++) {
    if (times[i] < 0) return refuse(*this, shape_error("repeat: a negative number of times"));
    if (times[i] == 1) continue;
    Dims to = y.dims(), repeated = to;
    repeated.insert(repeated.begin() + int64_t(i), times[i]);
    to[i] *= times[i];
    y = y.unsqueeze(int(i)).broadcast_to(repeated).reshape(to);
  }
  return y.ok() ? y.contiguous() : y;
}

}  // namespace gimbal::v1
