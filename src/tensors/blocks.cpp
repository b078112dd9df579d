// Quantized tensors: their blocks from numbers, and products of chosen matrices.
#include "tensors/state.h"

namespace gimbal::v1 {

Tensor quantize(const Tensor& x, DType to, const Tensor* importance) {
  if (!x.ok()) return x;
  const auto type = own(to);
  if (state_of(x).type == type && !importance) return x;
  const auto& f = gimbal::info(type);
  if (f.block < 2 || !gimbal::can_encode(type))
    return refuse(x, dtype_error(format("to: {} cannot be converted to {}", describe(x), f.name)));
  if (x.rank() == 0 || x.dim(-1) % f.block)
    return refuse(x, shape_error(format("to: {} has rows of {}, {} needs multiples of {}", describe(x),
                                        x.rank() ? x.dim(-1) : 0, f.name, f.block)));
  Tensor in[] = {cast(x, gimbal::DType::F32).contiguous(), x};
  if (!in[0].ok()) return in[0];
  if (importance) {
    const Tensor* both[] = {&x, importance};
    if (auto bad = unusable(both)) return *bad;
    if (state_of(*importance).type != gimbal::DType::F32 || importance->dims() != Dims{x.dim(-1)})
      return refuse(x, shape_error(format("to: the importance is {}, expected f32[{}]", describe(*importance),
                                          x.dim(-1))));
    if (x.count() == 0) return uninitialized(state_of(x).queue, type, x.dims());
    // Also of NaN, which is not at least 0.
    const Tensor wrong = importance->map("ge", 0.0).map("not").sum();
    auto bad = refused_by(wrong, [](std::span<const int64_t> n) {
      return n[0] == 0
                 ? std::nullopt
                 : std::optional(Error{Code::Usage,
                                       format("to: {} values of the importance are negative or NaN", n[0]),
                                       "",
                                       "",
                                       "",
                                       "",
                                       "",
                                       {}});
    });
    if (bad) return *bad;
    in[1] = importance->contiguous();
  }
  if (x.count() == 0) return uninitialized(state_of(x).queue, type, x.dims());
  gimbal::OpParams p;
  p.i[0] = int64_t(type);
  return apply(gimbal::OpKind::Encode, p, std::span(in, importance ? 2 : 1));
}

Tensor linear_indexed(const Tensor& x, const Tensor& w, const Tensor& ids) {
  const Tensor* all[] = {&x, &w, &ids};
  if (auto bad = unusable(all)) return *bad;
  const auto misfit = [&](const std::string& rule) {
    return shape_error(
        format("linear_indexed: {} with {} by {}: {}", describe(x), describe(w), describe(ids), rule));
  };
  const bool blocks = gimbal::info(state_of(w).type).block > 1;
  if (!floats(x) || state_of(x).type == gimbal::DType::F64 ||
      (!blocks && state_of(w).type != state_of(x).type))
    return refuse(x,
                  dtype_error(format("linear_indexed: {} with {}: expected f32, f16 or bf16, and weights of "
                                     "the same or a quantized format",
                                     describe(x), describe(w)),
                              "convert with to()"));
  if (!gimbal::has(gimbal::kIntegers, state_of(ids).type))
    return refuse(x, dtype_error(format("linear_indexed: the ids are {}, expected integers", describe(ids))));
  if (w.rank() != 3 || ids.rank() != 2 || x.rank() < 2 || x.rank() > 3)
    return refuse(x, misfit("expected x [rows, in] or [rows, slots, in], weights [experts, out, in] and ids "
                            "[rows, slots]"));
  if (x.dim(-1) != w.dim(2) || x.dim(0) != ids.dim(0) ||
      (x.rank() == 3 && x.dim(1) != ids.dim(1) && x.dim(1) != 1))
    return refuse(x, misfit("the dimensions differ"));
  const Dims dims = {ids.dim(0), ids.dim(1), w.dim(1)};
  if (ids.count() == 0 || w.dim(1) == 0 || x.dim(-1) == 0) return Tensor::zeros(dims, x.dtype(), x.queue());
  if (auto bad = bad_ids("linear_indexed", ids, w.dim(0), 0)) return *bad;
  const Tensor rows = cast(x, gimbal::DType::F32);
  const Tensor in[] = {w.contiguous(), x.rank() == 2 ? rows.unsqueeze(1) : rows, ids};
  return cast(apply(gimbal::OpKind::IndexedProduct, {}, in), state_of(x).type);
}

}  // namespace gimbal::v1
