// The common part of OpenCL C and C++ for GPUs: see emulator.h for the same in the host's C++.
#ifndef SHARED
#define SHARED(S)
#endif
#define FUNCTION(T, name, ...) LOCAL_FUNCTION T name(__VA_ARGS__)
#define ARG(T, n) const T n
#define BEGIN {
#define END }
#define VAR(T, n) T n
#define LET(T, n) const T n
#define ARRAY(T, n, k) T n[k]
#define PARAM_MEMBER(T, n) T n;

#define LET_UNIFORM(T, n, value) \
  BARRIER;                        \
  LET(T, n) = value;              \
  BARRIER
#define STEP_ROWS (step_[0])
#define STEP_OUT_ROWS (step_[1])

#define F32(x) ((f32)(x))
#define U32(x) ((u32)(x))
#define I32(x) ((i32)(x))
#define SELECT(c, a, b) ((c) ? (a) : (b))
#define DIVIDE(a, b) ((a) / (b))
#define HALF_LOW(w) half_value((w) & 0xffffu)
#define HALF_HIGH(w) half_value((w) >> 16u)
#define PACK_HALVES(a, b) (half_code(a) | (half_code(b) << 16u))
