// The product of many rows with a tile, for all formats of codes: 256 columns of the tile as bytes and float
// scales, the same columns of some rows, exact integer sums of groups of columns, and one FMA a group.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/memory.h"

struct StagedRow {
  float unit[8];         // per block of 32, or the first is that of the block of 256
  float unit_sum[8];     // unit times the sum of the block's codes
  int32_t start[16];     // per group: correction for the codes' zero point
  int32_t pair_sums[8];  // less the sums of the groups of a block of 256, as
                         // pairs of i16
  int32_t words[64];     // codes
};

struct UnpackedTile {
  float scale[16][16];               // per group
  float minimum[8][16];              // per block of 32, where a format has them
  int32_t minimum_pairs[8][16];      // of the groups of a block of 256, two i16 each
  float unit[16], minimum_unit[16];  // of the block of 256
  const uint8_t* codes;              // 64 vectors of 64 bytes: `bytes`, or, of q8_0, where they
                                     // lie in the packed tile
  uint8_t bytes[4096];
};

// The multiplication of a format's codes: 0: as code - 128; 1: unchanged; n > 1: up to n products are added
// in 16 bits before they are widened, if that is faster on the instruction set.
constexpr int product_steps(int most) {
  if (most == 255) return kWideZero ? 1 : 0;
  int n = kShortSums ? 8 : 1;
  while (n * most * 2 * 127 > 32767) n /= 2;
  return n;
}

// The sum of the activations' codes of group g of a block of 256.
template <int Columns>
inline int32_t code_sum(const uint8_t* a, int g) {
  constexpr gimbal::Activations layout = gimbal::activations_of(DType::A8_256);
  int32_t sum = 0;
  for (int i = 0; i < Columns / 16; i++) sum += read<int16_t>(a + layout.sums + Columns / 8 * g + 2 * i);
  return sum;
}

struct ProductOfCodes {
  using Staged = ProductOfCodes;
  using Row = StagedRow;
  using Weights = UnpackedTile;
  static constexpr int kRows = kStagedRows;
};

// Groups of `Columns` columns with one scale. It is multiplied by the row's unit (blocks of 32), or else the
// sum of all groups is (blocks of 256). Formats that agree in all this share their code.
template <int Columns, int Steps, bool UnitPerGroup, bool Minimums>
struct Product : ProductOfCodes {
  static constexpr int kColumns = Columns, kGroupVectors = Columns / 4;
  static constexpr bool kUnitPerGroup = UnitPerGroup;
  static constexpr DType x = UnitPerGroup ? DType::A8_32 : DType::A8_256;

  static void stage(const uint8_t* from, int32_t columns, int zero, Row& r) {
    constexpr gimbal::Activations layout = gimbal::activations_of(x);
    if constexpr (UnitPerGroup) {
      for (int32_t b = 0; b < columns / 32; b++, from += layout.bytes) {
        const int32_t sum = read<int32_t>(from + layout.sums);
        r.unit[b] = read<float>(from);
        if constexpr (Columns == 32) r.start[b] = -zero * sum;
        else {
          const int32_t first =
              ::CPU_VARIANT::sum(load_i8(reinterpret_cast<const int8_t*>(from + layout.codes)));
          r.start[2 * b] = -zero * first, r.start[2 * b + 1] = -zero * (sum - first);
        }
        if constexpr (Minimums) r.unit_sum[b] = r.unit[b] * float(sum);
        __builtin_memcpy(r.words + 8 * b, from + layout.codes, 32);
      }
    } else {
      r.unit[0] = read<float>(from);
      for (int g = 0; g < 256 / Columns; g++) {
        const int32_t sum = code_sum<Columns>(from, g);
        r.start[g] = -zero * sum;
        if constexpr (Minimums) write(reinterpret_cast<uint8_t*>(r.pair_sums) + 2 * g, int16_t(-sum));
      }
      __builtin_memcpy(r.words, from + layout.codes, 256);
    }
  }

  // sum[t * M + m]: of tile t and row m.
  template <int M>
  [[gnu::always_inline]] static inline void group(const UnpackedTile* w, const StagedRow* x, int first,
                                                  I* sum) {
    for (int v = 0; v < kGroupVectors; v += 8) steps<M>(w, x, first + v, sum);
  }
  // Up to eight vectors of codes of each tile.
  template <int M>
  [[gnu::always_inline]] static inline void steps(const UnpackedTile* w, const StagedRow* x, int first,
                                                  I* sum) {
    constexpr int n = kGroupVectors < 8 ? kGroupVectors : 8, T = kTilesTogether;
    constexpr int run = Steps < n ? Steps : n;
    if constexpr (run <= 1) {
      for (int i = first; i < first + n; i++) {
        Codes c[T];
        for (int t = 0; t < T; t++) c[t] = load_codes(w[t].codes + 64 * i);
        for (int m = 0; m < M; m++) {
          const I a = splat(x[m].words[i]);
          for (int t = 0; t < T; t++) {
            if constexpr (Steps == 0) sum[t * M + m] = dot_wide(sum[t * M + m], c[t], a);
            else sum[t * M + m] = dot(sum[t * M + m], c[t], a);
          }
        }
      }
    } else {
      static_assert(T == 1 || M == 0, "sums of 16 bits take the registers of a second tile");
      const uint8_t* codes = w->codes;
      for (int j = first; j < first + n; j += run) {
        ShortSums s[M];
        const Codes c = load_codes(codes + 64 * j);
        for (int m = 0; m < M; m++) s[m] = short_dot(c, splat(x[m].words[j]));
        for (int i = j + 1; i < j + run; i++) {
          const Codes d = load_codes(codes + 64 * i);
          for (int m = 0; m < M; m++) s[m] = add(s[m], short_dot(d, splat(x[m].words[i])));
        }
        for (int m = 0; m < M; m++) sum[m] = add(sum[m], widen(s[m]));
      }
    }
  }

  // Adds the columns' sums of the tiles to the totals of M rows.
  template <int M>
  [[gnu::noinline]] static void product(const UnpackedTile* w, const StagedRow* x, int32_t columns,
                                        float (*total)[16]) {
    constexpr int T = kTilesTogether;
    F acc[T * M];
    for (F& a : acc) a = splat(0.f);
    int g = 0;  // there is at least one: a do-while keeps the sums in registers
    do {
      I sum[T * M];
      for (int m = 0; m < M; m++)
        for (int t = 0; t < T; t++) sum[t * M + m] = splat(x[m].start[g]);
      group<M>(w, x, kGroupVectors * g, sum);
      for (int t = 0; t < T; t++) {
        const F scale = load(w[t].scale[g]);
        for (int m = 0; m < M; m++)
          acc[t * M + m] =
              fma(to_float(sum[t * M + m]),
                  UnitPerGroup ? mul(scale, splat(x[m].unit[g * Columns / 32])) : scale, acc[t * M + m]);
        if constexpr (UnitPerGroup && Minimums) {
          const F minimum = load(w[t].minimum[g]);
          for (int m = 0; m < M; m++) acc[t * M + m] = fma(minimum, splat(x[m].unit_sum[g]), acc[t * M + m]);
        }
      }
    } while (++g < columns / Columns);
    if constexpr (!UnitPerGroup) {
      F unit[M];
      for (int m = 0; m < M; m++) unit[m] = splat(x[m].unit[0]);
      for (int t = 0; t < T; t++)
        for (int m = 0; m < M; m++) acc[t * M + m] = mul(acc[t * M + m], mul(load(w[t].unit), unit[m]));
      if constexpr (Minimums) {
        I sum[T * M];
        for (I& s : sum) s = splat(int32_t(0));
        for (int i = 0; i < 128 / Columns; i++)
          for (int m = 0; m < M; m++) {
            const I codes = splat(x[m].pair_sums[i]);
            for (int t = 0; t < T; t++)
              sum[t * M + m] = dot_pairs(sum[t * M + m], load(w[t].minimum_pairs[i]), codes);
          }
        for (int t = 0; t < T; t++)
          for (int m = 0; m < M; m++)
            acc[t * M + m] =
                fma(to_float(sum[t * M + m]), mul(load(w[t].minimum_unit), unit[m]), acc[t * M + m]);
      }
    }
    for (int t = 0; t < T; t++)
      for (int m = 0; m < M; m++) {
        float* const to = total[t * kRows + m];
        store(to, add(load(to), acc[t * M + m]));
      }
  }
};
