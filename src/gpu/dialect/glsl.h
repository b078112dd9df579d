// The dialect as GLSL 4.6, for SPIR-V (Vulkan) and, through it, Metal. #version stands in front (scripts/build/gpu_modules.py), which also
// marks every float operation NoContraction. HAS_SUBGROUPS: a module for devices whose sub-groups exchange values.
#ifndef SHARED
#define SHARED(S)
#endif
#define f32 float
#define u32 uint
#define i32 int
layout(local_size_x = LANES) in;

#define FUNCTION(T, name, ...) T name(__VA_ARGS__)
#define ARG(T, n) const in T n
#define BEGIN {
#define END }
#define VAR(T, n) T n
#define LET(T, n) const T n
#define ARRAY(T, n, k) T n[k]
#define TABLE(T, n, k, ...) const T n[k] = T[k](__VA_ARGS__);

#define IN_BLOCK(i, T, n) layout(std430, set = 0, binding = i) readonly buffer Buffer_##i { T n[]; };
#define OUT_BLOCK(i, T, n) layout(std430, set = 0, binding = i) buffer Buffer_##i { T n[]; };
#define SHARED_ARRAY(T, n, k) shared T n[k];
#define PARAM_MEMBER(T, n) T n;
BUFFERS(IN_BLOCK, OUT_BLOCK)
layout(std430, set = 0, binding = 8) readonly buffer Step { i32 rows; i32 out_rows; } step_;
#ifdef PARAMS_IN_BUFFER
layout(std140, set = 0, binding = 9) uniform Params { PARAMS(PARAM_MEMBER) } P;
#else
layout(push_constant) uniform Params { PARAMS(PARAM_MEMBER) } P;
#endif
SHARED(SHARED_ARRAY)

#define MAIN void main() {
#define END_MAIN }
#define GROUP_X (gl_WorkGroupID.x)
#define GROUP_Y (gl_WorkGroupID.y)
#define GROUP_Z (gl_WorkGroupID.z)
#define LANE (gl_LocalInvocationID.x)
#define BARRIER barrier()
#define LET_UNIFORM(T, n, value) \
  BARRIER;                        \
  LET(T, n) = value;              \
  BARRIER
#define STEP_ROWS (step_.rows)
#define STEP_OUT_ROWS (step_.out_rows)

#define F32(x) float(x)
#define U32(x) uint(x)
#define I32(x) int(x)
#define BITS_TO_F32(x) uintBitsToFloat(x)
#define F32_TO_BITS(x) floatBitsToUint(x)
#define SELECT(c, a, b) ((c) ? (a) : (b))
#define ABS(x) abs(x)
#define FLOOR(x) floor(x)
#define ROUND_EVEN(x) roundEven(x)
#define MAX(a, b) max(a, b)
#define MIN(a, b) min(a, b)
#define MAX_U(a, b) max(a, b)
#define MIN_U(a, b) min(a, b)
#define MAX_I(a, b) max(a, b)
#define MIN_I(a, b) min(a, b)
#define HALF_LOW(w) half_value((w) & 0xffffu)
#define HALF_HIGH(w) half_value((w) >> 16u)
#define PACK_HALVES(a, b) (half_code(a) | (half_code(b) << 16u))
#define DOT4(sum, u, s) dot4_(sum, u, s)

int dot4_(int sum, uint u, uint s) {
  return sum + ((int(bitfieldExtract(u, 0, 8)) * bitfieldExtract(int(s), 0, 8) + int(bitfieldExtract(u, 8, 8)) * bitfieldExtract(int(s), 8, 8)) +
                (int(bitfieldExtract(u, 16, 8)) * bitfieldExtract(int(s), 16, 8) + int(bitfieldExtract(u, 24, 8)) * bitfieldExtract(int(s), 24, 8)));
}

// Vulkan lets a driver compute fma() as two operations. The runtime tests the device with a small kernel and sets fma_is_fused.
#ifdef FMA_IS_FUSED
#define FMA(a, b, c) fma(a, b, c)
#else
layout(constant_id = 0) const bool fma_is_fused = true;
#define FMA(a, b, c) fma_(a, b, c)
#include "gpu/dialect/fused.h"
float fma_(float a, float b, float c) {
  if (fma_is_fused) { return fma(a, b, c); }
  return fused(a, b, c);
}
#endif
#define PLAIN_DIVIDE(a, b) ((a) / (b))
#define PLAIN_SQRT(x) sqrt(x)
#define SQRT(x) root(x)
#define DIVIDE(a, b) quotient(a, b)
#include "gpu/dialect/division.h"
#include "gpu/dialect/halves.h"
#ifdef HAS_SUBGROUPS
layout(constant_id = 1) const uint subgroup_lanes = 4u;  // set by the runtime
#define SUBGROUP_LANES subgroup_lanes
#define FROM_LANE(T, v, d) subgroupShuffleXor(v, d)
#endif
#include "gpu/dialect/lanes.h"
