// The matrix products by tiles (AMX) and the table of them, beside the rows of kernels.cpp: these serve
// prompts, whose many rows share the turning of codes into bytes. Compiled for the real instructions, and for
// the tests once more over emulated ones.
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "tensor/activations.h"
#include "tensor/half.h"
#include "tile.h"
#include "vec.h"

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::Format, gimbal::Levels, gimbal::Scales, gimbal::format_of;
using gimbal::OpKind, gimbal::kChunk;

#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/row_sums.h"
#include "backends/cpu/kernels/tile_product.h"

// With few rows, turning codes into bytes takes longer than the tiles save.
constexpr CpuRow row(const char* name, DType weights, DType x,
                     void (*launch)(const CpuTask&, int64_t, int64_t)) {
  CpuRow k{{name, uint16_t(OpKind::MatMul), kTileRank, uint8_t(weights), uint8_t(x), CpuRows::Prompts},
           matmul_work,
           launch};
  k.items_at_once = kTilesOfChunk;
  return k;
}

#define STR2(x) #x
#define STR(x) STR2(x)
const CpuRow kTable[] = {
#define GIMBAL_NUMBERS(...)  // floats have no tiles
#define GIMBAL_FORMAT(id, name, ...)                                                \
  row("cpu." STR(CPU_VARIANT) ".mat_mul." #name, DType::id, format_of(DType::id).x, \
      matmul_by_tiles<gimbal::first_alike(DType::id)>),
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
};

}  // namespace

extern const CpuRow* const table;
extern const size_t table_size;
const CpuRow* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
