// Products of parts of tiles with a few rows of x, for all formats (few_rows.h): codes are unpacked to bytes
// in registers and multiplied with several rows. Each row's order of additions is the same as with one row.
#pragma once

#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/float_weights.h"
#include "backends/cpu/kernels/row_sums.h"

// Columns k to end - 1 of some tiles: whole chunks, except for a tile's last one.
struct TilePart {
  const uint8_t* tile[2];
  int tiles;
  int32_t k, end, columns;  // columns: of the whole tile
  bool first;               // the first group of rows: it prefetches
};
inline int32_t chunk_end(int32_t k, int32_t end) { return end - k < kChunk ? end : k + kChunk; }

// Where an instruction set defines its own, it is an optimization barrier: the compiler computes the vector
// here, neither earlier nor later. Otherwise it would hoist values shared by many rows and run out of
// registers: on Zen 4 spilling a vector costs as much as one or two products.
template <class V>
inline V here(V v) {
  return v;
}

// One step of a product, here: with one instruction where a variant has it, dot_from().
template <class W, class C>
inline I step_here(I sum, C codes, const uint8_t* word) {
  if constexpr (requires { dot_from(sum, codes, word); }) return dot_from(sum, codes, word);
  else return here(W::step(sum, codes, splat(read<int32_t>(word))));
}

// The number of a vector, as a type: so that the shifts and masks that make its codes are constants.
template <int J>
struct At {
  static constexpr int value = J;
};

template <int M, int J, int End, class Code>
[[gnu::always_inline]] inline void add_short(const Code& code, const uint8_t* const* x, int64_t at,
                                             ShortSums* s) {
  if constexpr (J < End) {
    const Codes c = code(At<J>());
    for (int m = 0; m < M; m++) s[m] = add(s[m], short_dot(c, splat(read<int32_t>(x[m] + at + 4 * J))));
    add_short<M, J + 1, End>(code, x, at, s);
  }
}
// Adds the products of vectors J to End - 1 with M rows of x. code(At<J>) gives a vector of codes, x[m] + at
// is the word of row m that the first one is multiplied with.
template <class W, int M, int J, int End, class Code>
[[gnu::always_inline]] inline void multiply(const Code& code, const uint8_t* const* x, int64_t at, I* sum) {
  constexpr int steps = product_steps(W::most), run = steps < End - J ? steps : End - J;
  if constexpr (J < End && run <= 1) {
    const Codes c = here(code(At<J>()));
    for (int m = 0; m < M; m++) sum[m] = step_here<W>(sum[m], c, x[m] + at + 4 * J);
    multiply<W, M, J + 1, End>(code, x, at, sum);
  } else if constexpr (J < End) {
    const Codes c = code(At<J>());
    ShortSums s[M];
    for (int m = 0; m < M; m++) s[m] = short_dot(c, splat(read<int32_t>(x[m] + at + 4 * J)));
    add_short<M, J + 1, J + run>(code, x, at, s);
    for (int m = 0; m < M; m++) sum[m] = add(sum[m], widen(s[m]));
    multiply<W, M, J + run, End>(code, x, at, sum);
  }
}

// The zero point's correction of a sum, from 16-bit sums of activations: `halves` are factors of the lower
// and the upper half of a word.
inline I less_zero(uint32_t halves, const uint8_t* sums) {
  return dot_pairs(splat(int32_t(0)), splat(int32_t(halves)), splat(read<int32_t>(sums)));
}

template <class W>
struct FewRows32 {
  static constexpr DType x = W::x;
  static constexpr int kTiles = 1, kFewest = W::minimums || W::format.group != 32 ? 4 : kFewestTogether;
  static constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
  static constexpr gimbal::Activations act = gimbal::activations_of(x);
  static constexpr int kGroups = parts.group < 32 ? 32 / parts.group : 1;

  // The initial sum of group h of 32 columns. If the zero point is a power of two, its correction is applied
  // at the end instead, by a shift: the multipliers are the bottleneck.
  static constexpr int kShift =
      W::zero > 0 && kGroups == 1 && !(W::zero & (W::zero - 1)) ? __builtin_ctz(unsigned(W::zero)) : 0;
  static inline I start(const uint8_t* x, int h) {
    if constexpr (W::zero == 0 || kShift > 0) return splat(int32_t(0));
    else if constexpr (kGroups == 1) return less_zero(uint16_t(-W::zero), x + act.sums);
    else {
      const int32_t first = sum(load_i8(reinterpret_cast<const int8_t*>(x + act.codes)));
      return splat(-W::zero * (h ? read<int32_t>(x + act.sums) - first : first));
    }
  }
  template <int M>
  [[gnu::noinline]] static void add_part(const TilePart& p, const uint8_t* const* rows, float (*total)[16]) {
    constexpr int kBytes = parts.codes + int(parts.scales_of(8)) / 8;  // of 32 columns
    const uint8_t* x[M];
    for (int m = 0; m < M; m++) x[m] = rows[m];
    int64_t at = int64_t(p.k) / act.block * act.bytes;
    for (int32_t k = p.k; k < p.end; k += kChunk) {
      const int32_t blocks = (chunk_end(k, p.end) - k) / 32;
      const uint8_t *w = p.tile[0] + kLayout<W::type>.chunk_offset(p.columns, k),
                    *codes = w + kLayout<W::type>.chunk_codes(blocks);
      F acc[M];
      for (F& a : acc) a = splat(0.f);
      for (int32_t b = 0; b < blocks; b++, at += act.bytes, codes += parts.codes) {
        if (p.first) fetch_ahead<kBytes>(w + kBytes * b);
        const uint8_t* scale = w + parts.scales_of(b);
        group<M, 0>(codes, scale, x, at, acc);
        if constexpr (W::minimums) {
          const F minimum = W::scale(scale + 32);
          for (int m = 0; m < M; m++) {
            const F sum = to_float(splat(read<int32_t>(x[m] + at + act.sums)));
            acc[m] = fma(minimum, mul(splat(read<float>(x[m] + at)), sum), acc[m]);
          }
        }
      }
      for (int m = 0; m < M; m++) store(total[m], add(load(total[m]), acc[m]));
    }
  }

 private:
  template <int M, int H>
  [[gnu::always_inline]] static inline void group(const uint8_t* codes, const uint8_t* scale,
                                                  const uint8_t* const* x, int64_t at, F* acc) {
    if constexpr (H < kGroups) {
      I sum[M];
      for (int m = 0; m < M; m++) sum[m] = start(x[m] + at, H);
      multiply<W, M, 8 / kGroups * H, 8 / kGroups*(H + 1)>(
          [codes](auto j) { return W::template codes<decltype(j)::value>(codes); }, x, at + act.codes, sum);
      if constexpr (kShift > 0)
        for (int m = 0; m < M; m++)
          sum[m] = sub(sum[m], shift_left<kShift>(splat(read<int32_t>(x[m] + at + act.sums))));
      const F unit = W::scale(scale + parts.scales * H);
      for (int m = 0; m < M; m++)
        acc[m] = fma(to_float(sum[m]), mul(unit, splat(read<float>(x[m] + at))), acc[m]);
      group<M, H + 1>(codes, scale, x, at, acc);
    }
  }
};

// With one scale per tensor, the totals are integer sums until the end.
template <class W>
struct FewRowsOfSums {
  static constexpr DType x = W::x;
  static constexpr int kTiles = 1, kFewest = 4;
  static constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
  static constexpr gimbal::Activations act = gimbal::activations_of(x);

  template <int M>
  [[gnu::noinline]] static void add_part(const TilePart& p, const uint8_t* const* rows, float (*total)[16]) {
    const uint8_t *codes = p.tile[0] + kLayout<W::type>.chunk_offset(p.columns, p.k), *x[M];
    for (int m = 0; m < M; m++) x[m] = rows[m];
    I sum[M];
    for (int m = 0; m < M; m++) sum[m] = read<I>(total[m]);
    int64_t at = int64_t(p.k) / act.block * act.bytes;
    for (int32_t k = p.k; k < p.end; k += act.block, at += act.bytes) {
      for (int m = 0; m < M; m++) sum[m] = add(sum[m], less_zero(uint16_t(-W::zero), x[m] + at + act.sums));
      for (int h = 0; h < act.block / 32; h++, codes += parts.codes) {
        if (p.first) fetch_ahead<parts.codes>(codes);
        multiply<W, M, 0, 8>([codes](auto j) { return W::template codes<decltype(j)::value>(codes); }, x,
                             at + act.codes + 32 * h, sum);
      }
    }
    for (int m = 0; m < M; m++) write(total[m], sum[m]);
  }
  static F result(const uint8_t* tile, const uint8_t* x, const float* total) {
    return ProductOfSums<1>::result(tile, x, total);
  }
};

template <class W>
struct FewRows256 {
  static constexpr DType x = W::x;
  static constexpr int kTiles = 1, kTilesOfFour = W::two_streams ? 2 : 1;  // while memory-bound
  static constexpr gimbal::cpu::Parts256 parts = W::parts;
  static constexpr gimbal::Activations act = gimbal::activations_of(x);
  static constexpr int kInEighth = W::columns < 32 ? 32 / W::columns : 1,  // groups
      kStarts = 16 * kInEighth;
  static constexpr int kLines = (parts.end + parts.head_step + 63) / 64;
  // Eighths that are one piece of code, whose shifts are constants: where that pays, else all eight.
  static constexpr bool kConstants = W::alike > 1 && kFewTogether == 8;
  static constexpr int kAlike = kConstants ? W::alike : 8, kFewest = kConstants ? kFewestTogether : 4;
  // Vectors of a group's part of an eighth, and those of them that are written out one by one.
  static constexpr int kOfGroup = 8 / kInEighth,
                       kSteps = product_steps(W::most) > 1 ? product_steps(W::most) : 2,
                       kRun = kFewTogether == 8 || kSteps > kOfGroup ? kOfGroup : kSteps;

  template <int M>
  [[gnu::noinline]] static void add_part(const TilePart& p, const uint8_t* const* rows, float (*total)[16]) {
    const uint8_t* x[M];
    for (int m = 0; m < M; m++) x[m] = rows[m] + int64_t(p.k) / act.block * act.bytes;
    // A single loop over tiles and blocks: for two, g++ would duplicate the block's code.
    for (int32_t k = p.k, t = 0; k < p.end;) {
      add_block<M>(p, p.tile[t], k, x, total + t * kMaxFewRows);
      if (++t < p.tiles) continue;
      t = 0, k += 256;
      for (const uint8_t*& row : x) row += act.bytes;
    }
  }

 private:
  // x: of this block.
  template <int M>
  [[gnu::always_inline]] static inline void add_block(const TilePart& p, const uint8_t* tile, int32_t k,
                                                      const uint8_t* const* x, float (*total)[16]) {
    const uint8_t *units = tile + k / 256 * parts.unit_step,
                  *block = tile + kLayout<W::type>.chunk_offset(p.columns, k);
    const uint8_t* ahead = tile + k / 256 * (parts.end + parts.head_step);  // evenly through the tile
    F groups[M];
    for (F& g : groups) g = splat(0.f);
    I sum[M];
    alignas(64) int32_t start[M][kStarts];
    if constexpr (W::zero != 0) begin(x, M, start[0]);
    eighths<M, 0>(block, p.first ? ahead : nullptr, x, start[0], sum, groups);
    const F of_block = unit<W::type>(units);
    for (int m = 0; m < M; m++) groups[m] = mul(groups[m], mul(of_block, splat(read<float>(x[m]))));
    if constexpr (W::minimums) {
      for (I& s : sum) s = splat(int32_t(0));
      for (int i = 0; i < 8; i++) {
        const I pair = W::minimum_pair(block, i);
        for (int m = 0; m < M; m++)
          sum[m] = dot_pairs(sum[m], pair, splat(read<int32_t>(x[m] + act.sums + 4 * i)));
      }
      const F minimum = HalfScale::scale(units + 32);
      for (int m = 0; m < M; m++)
        groups[m] = fma(to_float(sum[m]), mul(minimum, splat(-read<float>(x[m]))), groups[m]);
    }
    for (int m = 0; m < M; m++) store(total[m], add(load(total[m]), groups[m]));
  }
  // Initial sums of a row's groups, the corrections for the zero point: group h of eighth e at 16 h + 8 + e.
  // They are computed together and reloaded from memory: a broadcast load does not occupy the multipliers, a
  // move from a scalar register does. Not inline: compilers would extract the numbers from the vectors one by
  // one.
  [[gnu::noinline]] static void begin(const uint8_t* const* x, int rows, int32_t* start) {
    static_assert(act.sum_of == 16 && act.sum_bytes == 2 && act.sums + 32 == act.bytes);
    const I zero = splat(-W::zero);
    for (int m = 0; m < rows; m++, start += kStarts) {
      const I sums = load(reinterpret_cast<const int32_t*>(x[m] + act.bytes - 64)),
              first = shift_right<16>(shift_left<16>(sums)), second = shift_right<16>(sums);
      if constexpr (W::columns > 16) store(start, mul(add(first, second), zero));
      else store(start, mul(first, zero)), store(start + 16, mul(second, zero));
    }
  }

  template <int M, int First>
  [[gnu::always_inline]] static inline void eighths(const uint8_t* block, const uint8_t* ahead,
                                                    const uint8_t* const* x, const int32_t* start, I* sum,
                                                    F* groups) {
    if constexpr (First < 8) {
#pragma GCC unroll 1
      for (int e = First; e < First + kAlike; e++) {
        if (ahead) fetch_lines(ahead, kLines * e / 8, kLines * (e + 1) / 8);
        block = here(block);  // else codes of which every eighth takes a part are kept on the stack
#pragma GCC unroll 1
        for (int h = 0; h < kInEighth; h++) {
          for (int m = 0; m < M; m++) {
            const I begin = splat(W::zero == 0 ? 0 : start[m * kStarts + 16 * h + 8 + e]);
            sum[m] = W::columns < 256 || e == 0 ? begin : add(sum[m], begin);
          }
#pragma GCC unroll 1
          for (int i = h * kOfGroup; i < (h + 1) * kOfGroup; i += kRun)
            multiply<W, M, 0, kRun>(
                [block, e, i](auto j) {
                  if constexpr (kConstants)
                    return W::template codes<First>(block, 8 * (e - First) + i + decltype(j)::value);
                  else return W::any_eighth(block, e, i + decltype(j)::value);
                },
                x, act.codes + 32 * e + 4 * i, sum);
          if (W::columns == 256 && e < 7) continue;
          const F scale = group_scale<W>(block, W::columns == 256 ? 0 : e * kInEighth + h);
          for (int m = 0; m < M; m++) groups[m] = fma(to_float(sum[m]), scale, groups[m]);
        }
      }
      eighths<M, First + kAlike>(block, ahead, x, start, sum, groups);
    }
  }
};

// Interleaves two tiles: with two rows, the sums of a single tile would wait for each other.
template <class W>
struct FewRowsOfFloats {
  static constexpr DType x = DType::F32;
  static constexpr int kTiles = 2, kFewest = kFewestTogether;

  template <int M>
  [[gnu::noinline]] static void add_part(const TilePart& p, const uint8_t* const* rows, float (*total)[16]) {
    constexpr int64_t step = gimbal::info(W::type).bytes * 16;
    constexpr int kLine = int(64 / step ? 64 / step : 1);  // columns in a line of the cache
    // With more than two rows of floats, prefetched lines would be evicted
    // from the nearer cache levels.
    constexpr int kLevel = M > 2 ? 2 : 3;
    const uint8_t *w[kTiles], *x[M];
    for (int m = 0; m < M; m++) x[m] = rows[m];
    for (int t = 0; t < kTiles; t++) w[t] = p.tile[t];
    for (int32_t k = p.k; k < p.end;) {
      F acc[kTiles * M];
      for (F& a : acc) a = splat(0.f);
      for (const int32_t end = chunk_end(k, p.end); k < end; k++) {
        F c[kTiles];
        for (int t = 0; t < kTiles; t++) {
          if (p.first && k % kLine == 0) fetch_ahead<64, kLevel>(w[t] + k * step);
          c[t] = W::column(w[t] + k * step);
        }
        for (int m = 0; m < M; m++) {
          const F one = splat(read<float>(x[m] + 4 * int64_t(k)));
          for (int t = 0; t < kTiles; t++) acc[t * M + m] = fma(c[t], one, acc[t * M + m]);
        }
      }
      for (int t = 0; t < kTiles; t++)
        for (int m = 0; m < M; m++) {
          float* const to = total[t * kMaxFewRows + m];
          store(to, add(load(to), acc[t * M + m]));
        }
    }
  }
};
