#include "device/tensor_claims.h"
#include "gpu/tensors/launches.h"

namespace gimbal::gpu {
namespace {

// Places and bytes are counted in 32 bits.
constexpr gimbal_limit kDim = {"dimension", GIMBAL_LARGEST_DIM, GIMBAL_EVERY_VALUE, 0, 0, 0, INT32_MAX},
                       kBytes = {"bytes", GIMBAL_BYTES, GIMBAL_EVERY_VALUE, 0, 0, 0, UINT32_MAX};
constexpr gimbal_limit kSizes[] = {kDim, kBytes};
constexpr gimbal_limit kReplaces[] = {kDim, kBytes, {"added", GIMBAL_PARAM, 0, 1, 0, 0, 0}};
constexpr gimbal_limit kAdds[] = {kDim, kBytes, {"added", GIMBAL_PARAM, 0, 1, 0, 1, 1}};

constexpr DTypeSet kPlain = kNumbers, kF64 = set_of(DType::F64), kBlocks = decodable_blocks();

struct TensorRow {
  const char* name;  // behind "<backend>.gpu."
  OpKind op;
  DType as;
  const char* kernel;
  Plan plan;
  // Of those that the op has: no kernel computes in f64.
  DTypeSet formats, results = formats;
};
constexpr TensorRow kRows[] = {
    {"map.f32", OpKind::Map, DType::F32, "map_1", plan_map, kPlain},
    {"map.i64", OpKind::Map, DType::I64, "map_int", plan_map_int, kPlain},
    {"cast", OpKind::Cast, DType::F32, "tensor_cast", plan_cast, kPlain},
    {"assign", OpKind::Assign, DType::F32, "tensor_assign", plan_assign, kPlain},
    {"select", OpKind::Select, DType::F32, "tensor_select", plan_select, kPlain},
    {"gather", OpKind::Gather, DType::F32, "tensor_gather", plan_gather, kPlain},
    {"scatter_add", OpKind::Scatter, DType::F32, "tensor_scatter", plan_scatter, kPlain & ~(kF64 | kStored)},
    {"scatter", OpKind::Scatter, DType::F32, "tensor_scatter", plan_scatter, kPlain},
    {"check_ids", OpKind::CheckIds, DType::F32, "check_ids", plan_check_ids, kPlain},
    {"reduce.f32", OpKind::Reduce, DType::F32, "reduce_sum", plan_reduce, kPlain},
    {"reduce.i64", OpKind::Reduce, DType::I64, "reduce_int", plan_reduce_int, kPlain},
    {"softmax", OpKind::Softmax, DType::F32, "softmax", plan_softmax, kPlain},
    {"normalize", OpKind::Normalize, DType::F32, "normalize_values", plan_normalize, kPlain},
    {"cumsum.f32", OpKind::CumSum, DType::F32, "cumsum", plan_cumsum, kPlain},
    {"cumsum.i64", OpKind::CumSum, DType::I64, "cumsum_int", plan_cumsum_int, kPlain},
    {"order", OpKind::Order, DType::F32, "tensor_order", plan_tensor_order, kPlain},
    {"product", OpKind::Product, DType::F32, "product", plan_product, kPlain},
    {"conv", OpKind::Conv, DType::F32, "conv", plan_conv, kPlain},
    {"resample", OpKind::Resample, DType::F32, "resample", plan_resample, kPlain},
    {"random", OpKind::Random, DType::F32, "random", plan_random, kPlain},
    {"decode", OpKind::Cast, DType::F32, "decode", plan_decode, kBlocks, kPlain},
    {"encode", OpKind::Encode, DType::F32, "encode", plan_encode, kPlain, kBlocks},
    {"indexed_product", OpKind::IndexedProduct, DType::F32, "indexed", plan_indexed, kPlain | kBlocks},
    {"solve_triangular", OpKind::SolveTriangular, DType::F32, "solve", plan_solve, kPlain},
    {"cholesky", OpKind::Cholesky, DType::F32, "cholesky", plan_cholesky, kPlain},
    {"qr", OpKind::Qr, DType::F32, "qr", plan_qr, kPlain},
};

}  // namespace

std::vector<gimbal_limit> tensor_sizes() { return {std::begin(kSizes), std::end(kSizes)}; }

void add_tensor_rows(Rows& r, const std::string& backend) {
  for (const TensorRow& row : kRows) {
    r.names.push_back(std::make_unique<std::string>(backend + ".gpu." + row.name));
    r.rows.push_back({tensor_claims(r.names.back()->c_str(), row.op, row.as), row.kernel, row.plan});
    gimbal_kernel_info& k = r.rows.back().info;
    for (gimbal_operand& in : k.in) in.dtypes &= row.formats;
    for (gimbal_operand& out : k.out) out.dtypes &= row.results;
    k.limits = kSizes, k.n_limits = std::size(kSizes);
    if (row.op == OpKind::Scatter) {
      k.in[0].strided = k.out[0].strided = 0;  // a copy, which is dense
      k.limits = row.formats == kPlain ? kReplaces : kAdds, k.n_limits = std::size(kReplaces);
    }
  }
}

}  // namespace gimbal::gpu
