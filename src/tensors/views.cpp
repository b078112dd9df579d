// Views: other dims, strides and offsets of the same memory.
#include <algorithm>
#include <numeric>

#include "tensors/state.h"

namespace gimbal::v1 {
namespace {

bool in_blocks(const Tensor& t) { return gimbal::info(state_of(t).type).block > 1; }
// Formats in blocks have no strides: only their rows can be chosen.
Tensor refuse_blocks(std::string_view what, const Tensor& t) {
  return refuse(t,
                dtype_error(format("{}: {} is stored in blocks, which have no such view", what, describe(t)),
                            "convert it first, with to(f32)"));
}

}  // namespace

Tensor Tensor::reshape(const Dims& wanted) const {
  if (!ok()) return *this;
  Dims dims = wanted;
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < dims.size(); i++) {
    if (dims[i] != -1) known *= std::max<int64_t>(dims[i], 0);
    else if (open < 0) open = int(i);
    else return refuse(*this, shape_error(format("reshape: {} has several -1", gimbal::to_string(wanted))));
  }
  if (open >= 0) dims[size_t(open)] = known ? count() / known : 0;
  if (auto why = gimbal::check_dims(dims))
    return refuse(*this, shape_error(format("reshape: {}: {}", gimbal::to_string(dims), *why)));
  const gimbal::Layout to = gimbal::dense_layout(dims);
  if (to.count() != count())
    return refuse(*this, shape_error(format("reshape: {} has {} elements, {} has {}", describe(*this),
                                            count(), gimbal::to_string(wanted), to.count())));
  if (in_blocks(*this)) {
    if (rank() == 0 || dims.empty() || dims.back() % gimbal::info(state_->type).block)
      return refuse_blocks("reshape", *this);
    gimbal::Layout blocks = to;
    blocks.offset = state_->layout.offset;
    return view(*this, blocks);
  }
  if (auto l = gimbal::reshaped(state_->layout, dims)) return view(*this, *l);
  return copy().reshape(dims);
}

Tensor Tensor::permute(const Axes& order) const {
  if (!ok()) return *this;
  if (in_blocks(*this)) return refuse_blocks("permute", *this);
  std::vector<int> all;
  for (int d : order) {
    const auto at = dim_of(rank(), d);
    if (!at) return refuse(*this, no_such_dim("permute", *this, d));
    if (std::find(all.begin(), all.end(), *at) != all.end())
      return refuse(*this,
                    shape_error(format("permute: {} needs each of its dimensions once", describe(*this))));
    all.push_back(*at);
  }
  if (int(all.size()) != rank())
    return refuse(*this, shape_error(format("permute: {} has {} dimensions, found {}", describe(*this),
                                            rank(), all.size())));
  return view(*this, gimbal::permuted(state_->layout, all));
}

Tensor Tensor::t() const {
  if (!ok()) return *this;
  if (rank() < 2)
    return refuse(*this, shape_error(format("t: {} has less than two dimensions", describe(*this))));
  Axes order(size_t(rank()), 0);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(order);
}

Tensor Tensor::narrow(int dim, int64_t begin, int64_t size, int64_t step) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("narrow", *this, dim));
  const int64_t d = state_->layout.dim[*at];
  int64_t last = 0;
  const bool inside = size >= 0 && begin >= 0 && begin <= d && step != 0 &&
                      (size == 0 || (begin < d && !__builtin_mul_overflow(size - 1, step, &last) &&
                                     begin + last >= 0 && begin + last < d));
  if (!inside)
    return refuse(
        *this,
        index_error(format("narrow: {} elements from {} on in steps of {} are not within dimension {} of {}",
                           size, begin, step, *at, describe(*this))));
  if (in_blocks(*this) && (*at != 0 || step != 1)) return refuse_blocks("narrow", *this);
  return view(*this, gimbal::narrowed(state_->layout, *at, begin, size, step));
}

Tensor Tensor::select(int dim, int64_t index) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("select", *this, dim));
  const int64_t d = state_->layout.dim[*at], i = index < 0 ? index + d : index;
  if (i < 0 || i >= d)
    return refuse(*this, index_error(format("select: there is no {} in dimension {} of {}", index, *at,
                                            describe(*this))));
  if (in_blocks(*this) && (*at != 0 || rank() == 1)) return refuse_blocks("select", *this);
  return view(*this, gimbal::selected(state_->layout, *at, i));
}

Tensor Tensor::broadcast_to(const Dims& dims) const {
  if (!ok()) return *this;
  if (in_blocks(*this)) return refuse_blocks("broadcast_to", *this);
  if (auto why = gimbal::check_dims(dims))
    return refuse(*this, shape_error(format("broadcast_to: {}: {}", gimbal::to_string(dims), *why)));
  if (auto l = gimbal::broadcast(state_->layout, dims)) return view(*this, *l);
  return refuse(*this, shape_error(format("broadcast_to: {} does not repeat to {}", describe(*this),
                                          gimbal::to_string(dims)),
                                   "only dimensions of 1, and missing ones in front, repeat"));
}

Tensor Tensor::flip(int dim) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("flip", *this, dim));
  if (in_blocks(*this)) return refuse_blocks("flip", *this);
  return view(*this, gimbal::flipped(state_->layout, *at));
}

Tensor Tensor::unfold(int dim, int64_t size, int64_t step) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("unfold", *this, dim));
  if (in_blocks(*this)) return refuse_blocks("unfold", *this);
  if (rank() == gimbal::kMaxRank)
    return refuse(*this, shape_error(format("unfold: {} would have more than {} dimensions", describe(*this),
                                            gimbal::kMaxRank)));
  if (size < 1 || step < 1 || size > state_->layout.dim[*at])
    return refuse(*this,
                  shape_error(format("unfold: windows of {} in steps of {} are not within dimension {} of {}",
                                     size, step, *at, describe(*this))));
  return view(*this, gimbal::unfolded(state_->layout, *at, size, step));
}

Tensor Tensor::squeeze(int dim) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank(), dim);
  if (!at) return refuse(*this, no_such_dim("squeeze", *this, dim));
  if (state_->layout.dim[*at] != 1)
    return refuse(*this, shape_error(format("squeeze: dimension {} of {} is not 1", *at, describe(*this))));
  return view(*this, gimbal::selected(state_->layout, *at, 0));
}

Tensor Tensor::unsqueeze(int dim) const {
  if (!ok()) return *this;
  const auto at = dim_of(rank() + 1, dim);
  if (!at) return refuse(*this, no_such_dim("unsqueeze", *this, dim));
  Dims to = dims();
  to.insert(to.begin() + *at, 1);
  if (auto why = gimbal::check_dims(to))
    return refuse(*this, shape_error(format("unsqueeze: {}: {}", describe(*this), *why)));
  gimbal::Layout l = state_->layout;
  for (int i = l.rank; i > *at; i--) l.dim[i] = l.dim[i - 1], l.stride[i] = l.stride[i - 1];
  l.dim[*at] = 1, l.stride[*at] = 1, l.rank++;
  return view(*this, l);
}

Tensor turned(const Tensor& t, int dim) {
  Axes order(size_t(t.rank()), 0);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[size_t(dim)], order[order.size() - 1]);
  return t.permute(order);
}

}  // namespace gimbal::v1
