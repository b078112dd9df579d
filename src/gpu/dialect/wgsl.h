// The dialect as WGSL. All buffers are read_write: WebGPU refuses a buffer that one dispatch reads through one binding and writes
// through another, unless both are writable and apart, and activations share a buffer.
#ifndef SHARED
#define SHARED(S)
#endif
#define FUNCTION(T, name, ...) fn name(__VA_ARGS__) -> T
#define ARG(T, n) n: T
#define BEGIN {
#define END }
#define VAR(T, n) var n: T
#define LET(T, n) let n: T
#define ARRAY(T, n, k) var n: array<T, k>
#define TABLE(T, n, k, ...) const n = array<T, k>(__VA_ARGS__);

#define STORAGE_BUFFER(i, T, n) @group(0) @binding(i) var<storage, read_write> n: array<T>;
#define SHARED_ARRAY(T, n, k) var<workgroup> n: array<T, k>;
#define PARAM_MEMBER(T, n) n: T,
BUFFERS(STORAGE_BUFFER, STORAGE_BUFFER)
struct Step { rows: i32, out_rows: i32 }
@group(0) @binding(8) var<uniform> step_: Step;
// The last word is zero; compilers cannot know that.
struct Params { PARAMS(PARAM_MEMBER) zero_: u32 }
@group(0) @binding(9) var<uniform> P: Params;
SHARED(SHARED_ARRAY)
// Every kernel uses all its bindings: a bind group must have exactly the bindings that its kernel uses.
#define USE_BUFFER(i, T, n) _ = &n;

#define MAIN                                                                                                  \
  @compute @workgroup_size(LANES) fn main(@builtin(workgroup_id) group_: vec3<u32>,                           \
                                          @builtin(local_invocation_id) lane_: vec3<u32>) {                   \
    BUFFERS(USE_BUFFER, USE_BUFFER)                                                                           \
    _ = &step_;                                                                                               \
    _ = &P;
#define END_MAIN }
#define GROUP_X (group_.x)
#define GROUP_Y (group_.y)
#define GROUP_Z (group_.z)
#define LANE (lane_.x)
#define BARRIER workgroupBarrier()
#define LET_UNIFORM(T, n, value) let n: T = workgroupUniformLoad(&(value))
#define STEP_ROWS (step_.rows)
#define STEP_OUT_ROWS (step_.out_rows)

#define F32(x) f32(x)
#define U32(x) u32(x)
#define I32(x) i32(x)
#define BITS_TO_F32(x) bitcast<f32>(x)
#define F32_TO_BITS(x) bitcast<u32>(x)
#define SELECT(c, a, b) select((b), (a), (c))
#define ABS(x) abs(x)
#define FLOOR(x) floor(x)
#define ROUND_EVEN(x) round(x)
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

fn dot4_(sum: i32, u: u32, s: u32) -> i32 {
  return sum + (((i32(extractBits(u, 0u, 8u)) * extractBits(i32(s), 0u, 8u)) + (i32(extractBits(u, 8u, 8u)) * extractBits(i32(s), 8u, 8u))) +
                ((i32(extractBits(u, 16u, 8u)) * extractBits(i32(s), 16u, 8u)) + (i32(extractBits(u, 24u, 8u)) * extractBits(i32(s), 24u, 8u))));
}

// WGSL lets fma() be two operations. The runtime tests the device with a small kernel and sets fma_is_fused.
override fma_is_fused: bool = true;
#define FMA(a, b, c) fma_(a, b, c)
// WGSL lets a driver simplify float expressions, a - (a - b) = b, and Mesa's does. It cannot see that this XOR changes no bit.
#define ROUNDED(x) bitcast<f32>(bitcast<u32>(x) ^ P.zero_)
#include "gpu/dialect/fused.h"
fn fma_(a: f32, b: f32, c: f32) -> f32 {
  if (fma_is_fused) { return fma(a, b, c); }
  return fused(a, b, c);
}
#define PLAIN_DIVIDE(a, b) ((a) / (b))
#define PLAIN_SQRT(x) sqrt(x)
#define SQRT(x) root(x)
#define DIVIDE(a, b) quotient(a, b)
#include "gpu/dialect/division.h"
#include "gpu/dialect/lanes.h"
#include "gpu/dialect/halves.h"
