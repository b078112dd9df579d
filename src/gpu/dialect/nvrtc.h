// The dialect for NVIDIA's compiler at run time (NVRTC), for kernel texts that a program brings (gpu/text): gpu.h, with NVRTC's names for
// the builtins of clang that it lacks. All round to nearest, as those do; the options of the compilation forbid contraction.
#define GPU_IS_NVIDIA 1
#define __builtin_fmaf(a, b, c) __fmaf_rn(a, b, c)
#define __builtin_sqrtf(x) __fsqrt_rn(x)
#define __builtin_fabsf(x) fabsf(x)
#define __builtin_floorf(x) floorf(x)
#define __builtin_rintf(x) rintf(x)
#define __nvvm_read_ptx_sreg_ctaid_x() blockIdx.x
#define __nvvm_read_ptx_sreg_ctaid_y() blockIdx.y
#define __nvvm_read_ptx_sreg_ctaid_z() blockIdx.z
#define __nvvm_read_ptx_sreg_tid_x() threadIdx.x
#define __nvvm_bar_sync(n) __syncthreads()
#define __nvvm_shfl_sync_bfly_i32(mask, v, d, c) __shfl_xor_sync(mask, v, d)
#define _Float16 half_bits_
struct half_bits_ {
  unsigned short code;
  explicit __device__ half_bits_(float v) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(v)); }
  explicit __device__ operator float() const {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(code));
    return v;
  }
};
#include "gpu/dialect/gpu.h"
