// The dialect of the emulator: a kernel text becomes a C++ function that computes one lane. Included twice by each
// generated file: EMULATOR_FORM is fast, then checked. Macros stay as the first inclusion defined them.
#ifndef SHARED
#define SHARED(S)
#endif

#ifndef WORDS_OF_THE_DIALECT
#define WORDS_OF_THE_DIALECT
#define EMULATOR_SHARED_MEMBER(T, n, k) T n[k];
#define EMULATOR_SHARED_ARRAY(T, n, k)                                                                                 \
  [[maybe_unused]] const auto n = EMULATOR_FORM::array<EMULATOR_FORM::Shared<T>>(                                      \
      #n, Array::SharedMemory, static_cast<SharedMemory*>(lane_.shared)->n, k, uint32_t(offsetof(SharedMemory, n) / 4));
#define EMULATOR_PARAM(T, n) T n;
#define EMULATOR_IN(i, T, n)                                                                               \
  [[maybe_unused]] const auto n =                                                                          \
      EMULATOR_FORM::array<EMULATOR_FORM::In<T>>(#n, Array::Input, lane_.data[i], lane_.words[i], uint32_t(i));
#define EMULATOR_OUT(i, T, n)                                                                              \
  [[maybe_unused]] const auto n =                                                                          \
      EMULATOR_FORM::array<EMULATOR_FORM::Out<T>>(#n, Array::Output, lane_.data[i], lane_.words[i], uint32_t(i));

#define FUNCTION(T, name, ...) [[maybe_unused]] static inline T name(__VA_ARGS__)
#define ARG(T, n) [[maybe_unused]] const T n
#define BEGIN {
#define END }
#define VAR(T, n) [[maybe_unused]] T n
#define LET(T, n) [[maybe_unused]] const T n
#define ARRAY(T, n, k) [[maybe_unused]] EMULATOR_FORM::Private<T, k> n
#define TABLE(T, n, k, ...) [[maybe_unused]] static constexpr EMULATOR_FORM::Table<T, k> n = {__VA_ARGS__};

#define MAIN                                                                                        \
  void lane_function(Lane& lane_) {                                                                 \
    [[maybe_unused]] const u32 LANE = lane_.lane, GROUP_X = lane_.group[0], GROUP_Y = lane_.group[1], \
                               GROUP_Z = lane_.group[2];                                            \
    [[maybe_unused]] const Params& P = *static_cast<const Params*>(lane_.params);                   \
    BUFFERS(EMULATOR_IN, EMULATOR_OUT) SHARED(EMULATOR_SHARED_ARRAY)
#define END_MAIN }
#define BARRIER lane_.arrive(lane_, __LINE__)
#define LET_UNIFORM(T, n, value) \
  BARRIER;                        \
  LET(T, n) = value;              \
  BARRIER
#define STEP_ROWS (lane_.step[0])
#define STEP_OUT_ROWS (lane_.step[1])

#define F32(x) static_cast<f32>(x)
#define U32(x) static_cast<u32>(x)
#define I32(x) static_cast<i32>(x)
#define BITS_TO_F32(x) bits_to_f32(x)
#define F32_TO_BITS(x) f32_to_bits(x)
#define SELECT(c, a, b) select(c, a, b)
#define FMA(a, b, c) fma_(a, b, c)
#define DIVIDE(a, b) divide(a, b)
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
#define HALF_LOW(w) half_value((w) & 0xffffu)
#define HALF_HIGH(w) half_value((w) >> 16u)
#define PACK_HALVES(a, b) (half_code(a) | (half_code(b) << 16u))
#define SUBGROUP_LANES (lane_.subgroup)
#define FROM_LANE(T, v, d) from_lane(lane_, v, d, __LINE__)
#include "gpu/dialect/lanes.h"
#endif

struct Params {
  PARAMS(EMULATOR_PARAM)
};
struct SharedMemory {
  char none_[4];  // C++ needs a member
  SHARED(EMULATOR_SHARED_MEMBER)
};
#include "gpu/dialect/halves.h"
