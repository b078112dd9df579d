// Matrix products. One lane owns one output, so every instruction set adds the same numbers in the same
// order: within a chunk of 256 columns one FMA per block (per column for float weights), then the chunk sums
// in order. Several rows of x share each load of the weights; they do not share sums, so the bits do not
// depend on how many there are.
#pragma once

#include "backends/cpu/kernels/memory.h"

constexpr int kRowsAtOnce = 4;  // of x

// ---- q8_0 and q4_0 against a8_32: f32 scale, i32 sum of the codes, 32 codes ------------------------------
struct Q8_0 {
  static constexpr DType type = DType::Q8_0, x = DType::A8_32;
  static inline I start(int32_t sum) { return start_wide(sum); }
  template <int J>
  static inline Codes codes(const uint8_t* p) {
    return load_codes(p + 64 * J);
  }
  static inline I step(I acc, Codes c, I a) { return dot_wide(acc, c, a); }
};
struct Q4_0 {
  static constexpr DType type = DType::Q4_0, x = DType::A8_32;
  static inline I start(int32_t sum) { return splat(-8 * sum); }
  template <int J>
  static inline Codes codes(const uint8_t* p) {
    return J < 4 ? low_nibbles(load_codes(p + 64 * (J % 4))) : high_nibbles(load_codes(p + 64 * (J % 4)));
  }
  static inline I step(I acc, Codes c, I a) { return dot(acc, c, a); }
};

template <class W, int M, int J>
inline void block_steps(const uint8_t* codes, const uint8_t* const* a, I* sum) {
  if constexpr (J < 8) {
    Codes c = W::template codes<J>(codes);
    for (int m = 0; m < M; m++) sum[m] = W::step(sum[m], c, splat(read<int32_t>(a[m] + 8 + 4 * J)));
    block_steps<W, M, J + 1>(codes, a, sum);
  }
}

template <class W, int M>
struct Blocks32 {
  static void tile(const uint8_t* w, const uint8_t* const* x, int32_t columns, F* total) {
    const uint8_t* a[M];
    for (int m = 0; m < M; m++) a[m] = x[m], total[m] = splat(0.f);
    for (int32_t left = columns / 32; left > 0; left -= kChunk / 32) {
      const int32_t blocks = left < kChunk / 32 ? left : kChunk / 32;
      const uint8_t* codes = w + gimbal::cpu::up(blocks * 32, 64);
      F acc[M];
      for (int m = 0; m < M; m++) acc[m] = splat(0.f);
      for (int32_t b = 0; b < blocks; b++) {
        I sum[M];
        for (int m = 0; m < M; m++) sum[m] = W::start(read<int32_t>(a[m] + 4));
        block_steps<W, M, 0>(codes, a, sum);
        F scale = load(reinterpret_cast<const uint16_t*>(w + 32 * b));
        for (int m = 0; m < M; m++) {
          acc[m] = fma(to_float(sum[m]), mul(scale, splat(read<float>(a[m]))), acc[m]);
          a[m] += 40;
        }
        codes += gimbal::cpu::code_bytes(W::type);
      }
      for (int m = 0; m < M; m++) total[m] = add(total[m], acc[m]);
      w += gimbal::cpu::chunk_bytes(W::type, blocks);
    }
  }
};

// ---- q6_k against a8_256: f32 scale, 256 codes, 16 i16 sums of 16 codes
// ------------------------------------
template <int T>
inline Codes q6_codes(const uint8_t* block, int v) {  // vectors v = 16 T + (0..15)
  Codes low = load_codes(block + gimbal::cpu::kQ6Low + 64 * (v % 32));
  Codes high = load_codes(block + gimbal::cpu::kQ6High + 64 * (v % 16));
  return either(T < 2 ? low_nibbles(low) : high_nibbles(low), pair_at_4<T>(high));
}

template <int M, int T>
inline void q6_quarter(const uint8_t* block, const uint8_t* const* a, I* sum) {
  for (int s = 4 * T; s < 4 * T + 4; s++) {  // sub-blocks of 16 columns = 4 vectors
    I part[M];
    for (int m = 0; m < M; m++) part[m] = splat(-32 * read<int16_t>(a[m] + 260 + 2 * s));
    for (int v = 4 * s; v < 4 * s + 4; v++) {
      Codes c = q6_codes<T>(block, v);
      for (int m = 0; m < M; m++) part[m] = dot(part[m], c, splat(read<int32_t>(a[m] + 4 + 4 * v)));
    }
    I scale = load_i8(reinterpret_cast<const int8_t*>(block) + gimbal::cpu::kQ6Scales + 16 * s);
    for (int m = 0; m < M; m++) sum[m] = add(sum[m], mul(scale, part[m]));
  }
}

template <class, int M>
struct BlocksQ6 {
  static void tile(const uint8_t* w, const uint8_t* const* x, int32_t columns, F* total) {
    for (int m = 0; m < M; m++) total[m] = splat(0.f);
    const uint8_t* a[M];
    for (int m = 0; m < M; m++) a[m] = x[m];
    for (int32_t b = 0; b < columns / 256; b++, w += gimbal::cpu::kQ6Block) {
      I sum[M];
      for (int m = 0; m < M; m++) sum[m] = splat(int32_t(0));
      q6_quarter<M, 0>(w, a, sum);
      q6_quarter<M, 1>(w, a, sum);
      q6_quarter<M, 2>(w, a, sum);
      q6_quarter<M, 3>(w, a, sum);
      F scale = load(reinterpret_cast<const uint16_t*>(w));
      for (int m = 0; m < M; m++) {
        total[m] = add(total[m], fma(to_float(sum[m]), mul(scale, splat(read<float>(a[m]))), splat(0.f)));
        a[m] += 292;
      }
    }
  }
};
struct Q6_K {
  static constexpr DType type = DType::Q6_K, x = DType::A8_256;
};

// ---- f32, f16, bf16 against f32 ---------------------------------------------------------------------------
struct F32 {
  static constexpr DType type = DType::F32, x = DType::F32;
  static inline F column(const uint8_t* w) { return load(reinterpret_cast<const float*>(w)); }
};
struct F16 {
  static constexpr DType type = DType::F16, x = DType::F32;
  static inline F column(const uint8_t* w) { return load(reinterpret_cast<const uint16_t*>(w)); }
};
struct BF16 {
  static constexpr DType type = DType::BF16, x = DType::F32;
  static inline F column(const uint8_t* w) { return load_bf16(reinterpret_cast<const uint16_t*>(w)); }
};

template <class W, int M>
struct Columns {
  static void tile(const uint8_t* w, const uint8_t* const* x, int32_t columns, F* total) {
    constexpr int64_t step = gimbal::info(W::type).bytes * 16;
    for (int m = 0; m < M; m++) total[m] = splat(0.f);
    for (int32_t begin = 0; begin < columns; begin += kChunk) {
      const int32_t end = columns - begin < kChunk ? columns : begin + kChunk;
      F acc[M];
      for (int m = 0; m < M; m++) acc[m] = splat(0.f);
      for (int32_t k = begin; k < end; k++, w += step) {
        F c = W::column(w);
        for (int m = 0; m < M; m++) acc[m] = fma(c, splat(read<float>(x[m] + 4 * k)), acc[m]);
      }
      for (int m = 0; m < M; m++) total[m] = add(total[m], acc[m]);
    }
  }
};

// ---- the op: a unit is a tile of 16 outputs, for all rows of x
// ------------------------------------------------
inline CpuWork matmul_work(const CpuTask& t) {
  return {(t.in[0]->dim[1] + 15) / 16, 2.0 * t.in[0]->dim[0] * t.in[0]->dim[1] * t.rows};
}

template <template <class, int> class Tile, class W, int M>
inline void matmul_rows(const CpuTask& t, int64_t unit, int32_t row) {
  const int32_t columns = t.in[0]->dim[0], outputs = t.in[0]->dim[1];
  constexpr gimbal::DTypeInfo activations = gimbal::info(W::x);
  const int64_t x_row = int64_t(columns / activations.block) * activations.bytes;
  const uint8_t* x[M];
  for (int m = 0; m < M; m++) x[m] = t.x[1] + (row + m) * x_row;
  F total[M];
  Tile<W, M>::tile(t.x[0] + unit * gimbal::cpu::tile_bytes(W::type, columns), x, columns, total);
  const int32_t first = int32_t(unit) * 16, n = outputs - first < 16 ? outputs - first : 16;
  for (int m = 0; m < M; m++) {
    if (t.op->inputs == 3)
      total[m] = add(total[m], load_part(reinterpret_cast<const float*>(t.x[2]) + first, n));
    store_part(reinterpret_cast<float*>(t.y) + int64_t(row + m) * outputs + first, total[m], n);
  }
}

template <template <class, int> class Tile, class W>
void matmul(const CpuTask& t, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; unit++) {
    int32_t row = 0;
    for (; row + kRowsAtOnce <= t.rows; row += kRowsAtOnce) matmul_rows<Tile, W, kRowsAtOnce>(t, unit, row);
    for (; row < t.rows; row++) matmul_rows<Tile, W, 1>(t, unit, row);
  }
}
