// The dialect as OpenCL C 1.2. If the device has exact division, the runtime defines DIVISION_IS_EXACT=1 and requests it
// (-cl-fp32-correctly-rounded-divide-sqrt); else 0. A binding is a whole buffer and, in `from_`, the word at which it
// begins: sub-buffers must be aligned to some hundred bytes and must not overlap.
#pragma OPENCL FP_CONTRACT OFF
typedef float f32;
typedef uint u32;
typedef int i32;

#define LOCAL_FUNCTION static
#include "gpu/dialect/c_family.h"
#define TABLE(T, n, k, ...) constant T n[k] = {__VA_ARGS__};
#define IN_ARGUMENT(i, T, n) global const T *n##_buffer_,
#define OUT_ARGUMENT(i, T, n) global T *n##_buffer_,
#define IN_POINTER(i, T, n) global const T *n = n##_buffer_ + from_.word[i];
#define OUT_POINTER(i, T, n) global T *n = n##_buffer_ + from_.word[i];
#define SHARED_ARRAY(T, n, k) local T n[k];

#define MAIN                                                                                                          \
  kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void KERNEL_NAME(                                         \
      BUFFERS(IN_ARGUMENT, OUT_ARGUMENT) global const i32 *step_buffer_, const Origins from_, const Params P) {       \
    SHARED(SHARED_ARRAY)                                                                                              \
    BUFFERS(IN_POINTER, OUT_POINTER)                                                                                  \
    global const i32 *step_ = step_buffer_ + from_.word[8];
#define END_MAIN }
#define GROUP_X ((u32)get_group_id(0))
#define GROUP_Y ((u32)get_group_id(1))
#define GROUP_Z ((u32)get_group_id(2))
#define LANE ((u32)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define BITS_TO_F32(x) as_float((u32)(x))
#define F32_TO_BITS(x) as_uint((f32)(x))
#define FMA(a, b, c) fma((f32)(a), (f32)(b), (f32)(c))
#define ABS(x) fabs((f32)(x))
#define FLOOR(x) floor((f32)(x))
#define ROUND_EVEN(x) rint((f32)(x))
#define MAX(a, b) fmax((f32)(a), (f32)(b))
#define MIN(a, b) fmin((f32)(a), (f32)(b))
#define MAX_U(a, b) max((u32)(a), (u32)(b))
#define MIN_U(a, b) min((u32)(a), (u32)(b))
#define MAX_I(a, b) max((i32)(a), (i32)(b))
#define MIN_I(a, b) min((i32)(a), (i32)(b))
#define DOT4(sum, u, s) dot4_(sum, u, s)
#undef DIVIDE
#define DIVIDE(a, b) divide_(a, b)
#define SQRT(x) sqrt_(x)
#define PLAIN_DIVIDE(a, b) ((a) / (b))
#define PLAIN_SQRT(x) sqrt(x)
#include "gpu/dialect/division.h"

static f32 divide_(f32 a, f32 b) { return DIVISION_IS_EXACT ? a / b : quotient(a, b); }
static f32 sqrt_(f32 x) { return DIVISION_IS_EXACT ? sqrt(x) : root(x); }

static i32 dot4_(i32 sum, u32 u, u32 s) {
  int4 p = convert_int4(as_uchar4(u)) * convert_int4(as_char4(s));
  return sum + ((p.x + p.y) + (p.z + p.w));
}

typedef struct {
  ulong word[9];  // of the buffers, then of the step data
} Origins;
typedef struct {
  PARAMS(PARAM_MEMBER)
} Params;
#include "gpu/dialect/halves.h"
#ifdef HAS_SUBGROUPS
// The driver reports the number of lanes in this kernel; the runtime has tested that they are neighbours.
static u32 subgroup_lanes_(void) {
  u32 n = get_max_sub_group_size();
  return n >= 64u ? 64u : n >= 4u && (n & (n - 1u)) == 0u ? n : 1u;
}
#define SUBGROUP_LANES subgroup_lanes_()
#define FROM_LANE(T, v, d) sub_group_shuffle_xor(v, d)
#endif
#include "gpu/dialect/lanes.h"
