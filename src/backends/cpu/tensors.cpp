// The kernels of the tensor library that compute: once for each instruction set, as kernels.cpp.
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/map_abi.h"
#include "backends/cpu/maps_wide.h"
#include "ops/maps.h"
#include "ops/op.h"
#include "tensor/block_encode.h"
#include "tensor/half.h"
#include "tensor/quant.h"
#include "vec.h"  // from variants/<name>

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::OpKind;

#include "backends/cpu/kernels/maps.h"
#include "backends/cpu/tensors/columns.h"
#include "backends/cpu/tensors/conv.h"
#include "backends/cpu/tensors/factor.h"
#include "backends/cpu/tensors/indexed.h"
#include "backends/cpu/tensors/map.h"
#include "backends/cpu/tensors/number.h"
#include "backends/cpu/tensors/products.h"
#include "backends/cpu/tensors/random.h"
#include "backends/cpu/tensors/reduce.h"
#include "backends/cpu/tensors/rows_of.h"
#include "backends/cpu/tensors/scalar.h"
#include "backends/cpu/tensors/sums_of_products.h"
#include "backends/cpu/tensors/view.h"

constexpr CpuRow row(const char* name, OpKind op, DType as, CpuWork (*work)(const CpuTask&),
                     void (*launch)(const CpuTask&, int64_t, int64_t)) {
  return {{name, uint16_t(op), kRank, uint8_t(as), 0, CpuRows::Any}, work, launch};
}

constexpr CpuRow by_element(CpuRow r) {
  r.by_row = true;
  return r;
}

#define STR2(x) #x
#define STR(x) STR2(x)
#define NAME(text) "cpu." STR(CPU_VARIANT) "." text
#define FLOATS(name, op, work, function)                                 \
  row(NAME(name ".f32"), OpKind::op, DType::F32, work, function<float>), \
      row(NAME(name ".f64"), OpKind::op, DType::F64, work, function<double>)

const CpuRow kTable[] = {
    by_element(row(NAME("map.f32"), OpKind::Map, DType::F32, grains_of_output<8>, map_as<float>)),
    by_element(row(NAME("map.f64"), OpKind::Map, DType::F64, grains_of_output<8>, map_as<double>)),
    by_element(row(NAME("map.i64"), OpKind::Map, DType::I64, grains_of_output<4>, map_as<int64_t>)),
    row(NAME("reduce.f32"), OpKind::Reduce, DType::F32, strips_or_outputs<float>, reduce_any<float>),
    row(NAME("reduce.f64"), OpKind::Reduce, DType::F64, strips_or_outputs<double>, reduce_any<double>),
    row(NAME("reduce.i64"), OpKind::Reduce, DType::I64, strips_or_outputs<int64_t>, reduce_any<int64_t>),
    FLOATS("softmax", Softmax, rows_along_first, softmax_as),
    FLOATS("normalize", Normalize, rows_along_first, normalize_as),
    FLOATS("cumsum", CumSum, rows_along_first, cumsum_as),
    row(NAME("cumsum.i64"), OpKind::CumSum, DType::I64, rows_along_first, cumsum_as<int64_t>),
    FLOATS("resample", Resample, rows_along_first, resample_as),
    row(NAME("product.f32"), OpKind::Product, DType::F32, tiles_of_product, product_f32),
    row(NAME("product.f64"), OpKind::Product, DType::F64, wide_tiles_of_product, product_f64),
    row(NAME("conv.f32"), OpKind::Conv, DType::F32, tiles_of_conv, conv_f32),
    row(NAME("conv.f64"), OpKind::Conv, DType::F64, wide_tiles_of_conv, conv_f64),
    FLOATS("solve_triangular", SolveTriangular, columns_to_solve, solve_as),
    FLOATS("cholesky", Cholesky, matrices_to_factor, cholesky_as),
    FLOATS("qr", Qr, matrices_to_factor, qr_as),
    row(NAME("indexed_product"), OpKind::IndexedProduct, DType::F32, tiles_of_slots, indexed_product),
    row(NAME("random"), OpKind::Random, DType::F32, grains_of_output<40>, random),
};

}  // namespace

extern const CpuRow* const tensors;
extern const size_t tensors_size;
const CpuRow* const tensors = kTable;
const size_t tensors_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
