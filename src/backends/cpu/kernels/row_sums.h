// Weights with one scale for the tensor against a8_row: the exact integer dot product of a whole row, and one
// scaling.
#pragma once

#include "backends/cpu/kernels/blocks32.h"

template <class W>
struct OneRowOfSums {
  static constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
  static constexpr gimbal::Activations x = gimbal::activations_of(W::x);
  static constexpr int kVectors = parts.codes / 64, kParts = 8 / kVectors;  // codes in a byte
  // Codes are multiplied where they stand in their bytes, as far as dot() takes them there; their sum is
  // shifted.
  static constexpr int kWidth = 8 / kParts;
  static constexpr int place(int part) { return W::most << kWidth * part <= kMaxCode ? kWidth * part : 0; }

  template <int J>
  static inline void steps(const uint8_t* codes, const uint8_t* a, I* sums) {
    if constexpr (J < 8) {
      constexpr int part = J / kVectors;
      sums[part] =
          W::step(sums[part], W::template codes<J, place(part)>(codes), splat(read<int32_t>(a + 4 * J)));
      steps<J + 1>(codes, a, sums);
    }
  }
  template <int Part>
  static inline I join(const I* sums, I total) {
    if constexpr (Part == kParts) return total;
    else return join<Part + 1>(sums, add(total, shift_right<place(Part)>(sums[Part])));
  }
  static inline F tile(const uint8_t* w, const uint8_t* a, int32_t columns) {
    const F unit = mul(load(reinterpret_cast<const float*>(w)), splat(read<float>(a)));
    I total = splat(int32_t(0));
    w += gimbal::cpu::kTensorScales;
    for (int32_t left = columns; left > 0; left -= kChunk) {
      I sums[kParts];
      for (I& s : sums) s = splat(int32_t(0));
      for (int32_t k = 0; k < left && k < kChunk; k += x.block, a += x.bytes) {
        total = add(total, splat(int32_t(uint32_t(-W::zero) * uint32_t(read<int32_t>(a + x.sums)))));
        for (int h = 0; h < x.block / 32; h++, w += parts.codes) {
          fetch_ahead<parts.codes>(w);
          steps<0>(w, a + x.codes + 32 * h, sums);
        }
      }
      total = join<0>(sums, total);
    }
    return mul(to_float(total), unit);
  }
};

// Many rows of x: integers are added up chunk by chunk in the totals' place, and scaled at the end.
template <int Steps>
struct ProductOfSums : ProductOfCodes {
  static constexpr int kColumns = 32;
  static constexpr bool kUnitPerGroup = true;
  static constexpr DType x = DType::A8_ROW;

  static void stage(const uint8_t* from, int32_t columns, int zero, StagedRow& r) {
    constexpr gimbal::Activations layout = gimbal::activations_of(x);
    r.start[0] = 0;
    for (int32_t k = 0; k < columns; k += layout.block, from += layout.bytes) {
      r.start[0] -= zero * read<int32_t>(from + layout.sums);
      __builtin_memcpy(r.words + k / 4, from + layout.codes, size_t(layout.block));
    }
  }
  template <int M>
  [[gnu::noinline]] static void product(const UnpackedTile* w, const StagedRow* x, int32_t columns,
                                        float (*total)[16]) {
    constexpr int T = kTilesTogether;
    I sum[T * M];
    for (int m = 0; m < M; m++)
      for (int t = 0; t < T; t++) sum[t * M + m] = splat(x[m].start[0]);
    for (int32_t v = 0; v < columns / 4; v += 8)
      ::CPU_VARIANT::Product<32, Steps, true, false>::template steps<M>(w, x, v, sum);
    for (int t = 0; t < T; t++)
      for (int m = 0; m < M; m++) {
        float* const to = total[t * kRows + m];
        write(to, add(read<I>(to), sum[t * M + m]));
      }
  }
  static F result(const uint8_t* tile, const uint8_t* x, const float* total) {
    return mul(to_float(read<I>(total)),
               mul(load(reinterpret_cast<const float*>(tile)), splat(read<float>(x))));
  }
};
template <class W>
struct RowsOfSums {
  using Product = ProductOfSums<product_steps(W::most)>;
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, UnpackedTile& to) {
    constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
    const F unit = load(reinterpret_cast<const float*>(tile));
    const uint8_t* codes = tile + kLayout<W::type>.chunk_offset(columns, k);
    const int32_t blocks = (columns - k < kChunk ? columns - k : kChunk) / 32;
    to.codes = to.bytes;
#pragma GCC unroll 1
    for (int32_t b = 0; b < blocks; b++, codes += parts.codes) {
      store(to.scale[b], unit);
      unpack_block<W, 0>(codes, to.bytes + 512 * b);
    }
  }
};
