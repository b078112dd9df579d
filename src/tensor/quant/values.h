// Every weight format as a struct quant::<ID> (one .inc file each). value_of(block, j) defines value j of a
// block. Where the format has them, the struct also has the parts that packing needs (packing/pack.cpp):
//   code_of(block, j)      the code as formats.def counts it; or level_of(block, j), the level that it
//   selects unit_at, minimum_unit_at     byte offsets of the f16 unit of the block and of its minimums; or
//   unit_bits(block[, group])    the 16 bits of the scale of the block or of a group
//   scale_of, minimum_of   of a group: the byte as packed (2 s + 1 for Scales::Odd)
//   usual_unit, make_sane  for random blocks: a unit that gives values of about 1; repairs invalid fields
// The dialect has functions without loops or pointers; mixed operators are always parenthesised:
//   FUNCTION(type, name, arguments) BEGIN .. END, ARG(type, name), ARG_ (after a comma), LET(type, name)
//   BLOCK                  the argument `block`
//   U8 U16 U32 (block, i)  unsigned little-endian integer at byte i, as u32; I8: signed, as i32
//   F16(block, i)          the half at byte i as f32; HALF_BITS(u): the same from its bits
//   FLOAT_BITS(u)          the f32 with these bits; F32(x), I32(x): conversion by value
//   SELECT(c, a, b)        a if c, else b
//   TABLE_*(i)             entry i of a table: the .def file's numbers as unsigned (IQ4_NL, FP4: signed)
//
// Values equal those of ggml's to_float bit for bit, provided that the compiler does not contract
// multiplications and additions.
#pragma once
#include <stdint.h>

#include "tensor/half.h"

typedef float quant_f32;
typedef uint32_t quant_u32;
typedef int32_t quant_i32;

#define FUNCTION(type, name, ...) static inline quant_##type name(__VA_ARGS__)
#define BEGIN {
#define END }
#define ARG(type, name) quant_##type name
#define ARG_(type, name) , quant_##type name
#define LET(type, name) const quant_##type name
#define BLOCK const uint8_t* block
#define U8(block, i) uint32_t((block)[i])
#define U16(block, i) (U8(block, i) | U8(block, (i) + 1) << 8)
#define U32(block, i) (U16(block, i) | U16(block, (i) + 2) << 16)
#define I8(block, i) int32_t(int8_t((block)[i]))
#define HALF_BITS(u) half_to_float(uint16_t(u))
#define F16(block, i) HALF_BITS(U16(block, i))
#define FLOAT_BITS(u) __builtin_bit_cast(float, uint32_t(u))
#define F32(x) float(x)
#define I32(x) int32_t(x)
#define SELECT(c, a, b) ((c) ? (a) : (b))

static constexpr uint16_t quant_iq1_grid[2048] = {
#include "tensor/quant/iq1_grid.def"
};
static constexpr uint16_t quant_iq2_xxs_grid[256] = {
#include "tensor/quant/iq2_xxs_grid.def"
};
static constexpr uint16_t quant_iq2_xs_grid[512] = {
#include "tensor/quant/iq2_xs_grid.def"
};
static constexpr uint16_t quant_iq2_s_grid[1024] = {
#include "tensor/quant/iq2_s_grid.def"
};
static constexpr uint16_t quant_iq3_xxs_grid[256] = {
#include "tensor/quant/iq3_xxs_grid.def"
};
static constexpr uint16_t quant_iq3_s_grid[512] = {
#include "tensor/quant/iq3_s_grid.def"
};
static constexpr int8_t quant_iq4_nl_levels[16] = {
#include "tensor/quant/iq4_nl_levels.def"
};
static constexpr int8_t quant_fp4_levels[16] = {
#include "tensor/quant/fp4_levels.def"
};
#define TABLE_IQ1(i) uint32_t(quant_iq1_grid[i])
#define TABLE_IQ2_XXS(i) uint32_t(quant_iq2_xxs_grid[i])
#define TABLE_IQ2_XS(i) uint32_t(quant_iq2_xs_grid[i])
#define TABLE_IQ2_S(i) uint32_t(quant_iq2_s_grid[i])
#define TABLE_IQ3_XXS(i) uint32_t(quant_iq3_xxs_grid[i])
#define TABLE_IQ3_S(i) uint32_t(quant_iq3_s_grid[i])
#define TABLE_IQ4_NL(i) int32_t(quant_iq4_nl_levels[i])
#define TABLE_FP4(i) int32_t(quant_fp4_levels[i])

namespace gimbal::quant {
namespace {
#include "tensor/quant/all.inc"
}
}  // namespace gimbal::quant

#undef FUNCTION
#undef BEGIN
#undef END
#undef ARG
#undef ARG_
#undef LET
#undef BLOCK
#undef U8
#undef U16
#undef U32
#undef I8
#undef HALF_BITS
#undef F16
#undef FLOAT_BITS
#undef F32
#undef I32
#undef SELECT
#undef TABLE_IQ1
#undef TABLE_IQ2_XXS
#undef TABLE_IQ2_XS
#undef TABLE_IQ2_S
#undef TABLE_IQ3_XXS
#undef TABLE_IQ3_S
#undef TABLE_IQ4_NL
#undef TABLE_FP4
