// The dialect as C++ for NVIDIA and AMD GPUs, as clang compiles it without CUDA's or ROCm's kit: attributes and builtins
// instead of their headers. GPU_IS_NVIDIA and GPU_HAS_MIXED_DOT come from the
// build. Kernels that share a module are in namespaces of their own.
#define LOCAL_FUNCTION [[maybe_unused]] static __attribute__((device)) inline __attribute__((always_inline))
#include "gpu/dialect/c_family.h"
#define TABLE(T, n, k, ...) [[maybe_unused]] static __attribute__((constant)) const T n[k] = {__VA_ARGS__};
// No buffer is bound twice (WebGPU forbids it), so the compiler may read ahead of writes.
#define IN_ARGUMENT(i, T, n) const T* __restrict__ n,
#define OUT_ARGUMENT(i, T, n) T* __restrict__ n,
#define SHARED_ARRAY(T, n, k) static __attribute__((shared)) T n[k];

// At least one group per multiprocessor, or two large ones. This is needed: without a number NVIDIA's assembler targets a higher occupancy and spills
// registers to memory for it (ptxas 13.5: 23 kernels). For AMD the second number counts waves, so it is left out.
#ifdef GPU_IS_NVIDIA
#ifdef MATRIX_UNITS
#define LAUNCH_BOUNDS launch_bounds(LANES, 512 / LANES)
#else
#define LAUNCH_BOUNDS launch_bounds(LANES, LANES == 256 ? 2 : 1)
#endif
#else
#define LAUNCH_BOUNDS launch_bounds(LANES)
#endif

// A module holds several kernels, each in its own namespace: only the entry point has a name outside.
#define MAIN                                                                                                     \
  extern "C" __attribute__((global)) __attribute__((LAUNCH_BOUNDS)) void KERNEL_NAME(                            \
      BUFFERS(IN_ARGUMENT, OUT_ARGUMENT) const i32* step_, const Params P) {                                     \
    SHARED(SHARED_ARRAY)
#define END_MAIN }

#define BITS_TO_F32(x) bits_to_f32(x)
#define F32_TO_BITS(x) f32_to_bits(x)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define SQRT(x) __builtin_sqrtf(x)
#define ABS(x) __builtin_fabsf(x)
#define FLOOR(x) __builtin_floorf(x)
#define ROUND_EVEN(x) __builtin_rintf(x)
#define MAX(a, b) max_(a, b)
#define MIN(a, b) min_(a, b)
#define MAX_U(a, b) max_u(a, b)
#define MIN_U(a, b) min_u(a, b)
#define MAX_I(a, b) max_i(a, b)
#define MIN_I(a, b) min_i(a, b)
#define DOT4(sum, u, s) dot4(sum, u, s)
#define ROLLED _Pragma("clang loop unroll(disable)")
#define PRAGMA_OF(text) _Pragma(#text)
#define UNROLLED(n) PRAGMA_OF(clang loop unroll_count(n))

typedef float f32;
typedef unsigned u32;
typedef int i32;

namespace {
LOCAL_FUNCTION f32 max_(f32 a, f32 b) { return a > b ? a : b; }
LOCAL_FUNCTION f32 min_(f32 a, f32 b) { return a < b ? a : b; }
LOCAL_FUNCTION u32 max_u(u32 a, u32 b) { return a > b ? a : b; }
LOCAL_FUNCTION u32 min_u(u32 a, u32 b) { return a < b ? a : b; }
LOCAL_FUNCTION i32 max_i(i32 a, i32 b) { return a > b ? a : b; }
LOCAL_FUNCTION i32 min_i(i32 a, i32 b) { return a < b ? a : b; }
LOCAL_FUNCTION f32 bits_to_f32(u32 v) { return __builtin_bit_cast(f32, v); }
LOCAL_FUNCTION u32 f32_to_bits(f32 v) { return __builtin_bit_cast(u32, v); }
LOCAL_FUNCTION f32 half_value(u32 code) { return f32(__builtin_bit_cast(_Float16, (unsigned short)code)); }
LOCAL_FUNCTION u32 half_code(f32 value) { return __builtin_bit_cast(unsigned short, _Float16(value)); }

#ifdef GPU_IS_NVIDIA
#define GROUP_X ((u32)__nvvm_read_ptx_sreg_ctaid_x())
#define GROUP_Y ((u32)__nvvm_read_ptx_sreg_ctaid_y())
#define GROUP_Z ((u32)__nvvm_read_ptx_sreg_ctaid_z())
#define LANE ((u32)__nvvm_read_ptx_sreg_tid_x())
#define BARRIER __nvvm_bar_sync(0)
// All lanes of the warp take part: a group fills whole warps, or less than one.
LOCAL_FUNCTION u32 from_lane(u32 v, i32 d) { return u32(__nvvm_shfl_sync_bfly_i32(LANES >= 32 ? ~0u : (1u << (LANES & 31)) - 1u, i32(v), d, 31)); }
#define FROM_LANE(T, v, d) __builtin_bit_cast(T, from_lane(__builtin_bit_cast(u32, v), d))
LOCAL_FUNCTION i32 dot4(i32 sum, u32 u, u32 s) {
  i32 r;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(u), "r"(s), "r"(sum));
  return r;
}
#ifdef MATRIX_UNITS  // gpu/matrix/kernels/matrix_dot.inc
#define MATRIX_DOT(c0, c1, c2, c3, low, high, b, memory)                                                     \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
               : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3) : "r"(low), "r"(high), "r"(b));
#endif
#else
#define GROUP_X ((u32)__builtin_amdgcn_workgroup_id_x())
#define GROUP_Y ((u32)__builtin_amdgcn_workgroup_id_y())
#define GROUP_Z ((u32)__builtin_amdgcn_workgroup_id_z())
#define LANE ((u32)__builtin_amdgcn_workitem_id_x())
#define BARRIER group_barrier()
LOCAL_FUNCTION void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// Among 32 lanes, so it works for wavefronts of both sizes. The mask of the instruction (from bit 10 on) is a constant.
#define FROM_LANE(T, v, d) \
  __builtin_bit_cast(T, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(i32, v), i32(((d) << 10) | 31)))
#ifdef GPU_HAS_MIXED_DOT
LOCAL_FUNCTION i32 dot4(i32 sum, u32 u, u32 s) { return __builtin_amdgcn_sudot4(false, int(u), true, int(s), sum, false); }
#else
// The instruction takes two signed numbers: u - 128, and 128 times the sum of s added again.
LOCAL_FUNCTION i32 dot4(i32 sum, u32 u, u32 s) {
  i32 ones = __builtin_amdgcn_sdot4(0x01010101, int(s), 0, false);
  return __builtin_amdgcn_sdot4(int(u ^ 0x80808080u), int(s), sum + 128 * ones, false);
}
#endif
#endif
#define SUBGROUP_LANES 32u
#include "gpu/dialect/lanes.h"
}  // namespace

struct Params {
  PARAMS(PARAM_MEMBER)
};
