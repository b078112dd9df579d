// Weights against a8_32. Per 32 columns one exact integer dot product and one FMA; a format with minimums
// adds one FMA of the minimum and the activations' sum.
#pragma once

#include "backends/cpu/kernels/choice_of_product.h"
#include "backends/cpu/kernels/codes.h"

// Codes of 32 columns: vector J is columns 4 J to 4 J + 3.
template <DType T>
struct Weights32 : CodesOf<T> {
  static constexpr Format format = format_of(T);
  // Codes of Width bits, moved to bit To: as many vectors, each shared by the others.
  template <int Width, int J, int To>
  static inline Codes plane(const uint8_t* at) {
    return field<Width*(J / Width), To, Width>(load_codes(at + 64 * (J % Width)));
  }
  template <int J, int To = 0>
  static inline Codes codes(const uint8_t* p) {
    constexpr int to = To + format.doubled;
    if constexpr (format.bytes) return load_codes(p + 64 * J);
    else if constexpr (format.levels != Levels::Plain)
      return lookup(plane<4, J, 0>(p), kLevelTable<format.levels, format.zero>.entry);
    else if constexpr (format.nibbles && format.bits)
      return either(plane<4, J, to>(p), plane<1, J, to + 4>(p + 256));
    else if constexpr (format.nibbles) return plane<4, J, to>(p);
    else if constexpr (format.pairs) return plane<2, J, to>(p);
    else return plane<1, J, to>(p);
  }
  static inline F scale(const uint8_t* p) {
    if constexpr (format.scales == Scales::Brains) return load_bf16(reinterpret_cast<const uint16_t*>(p));
    else return HalfScale::scale(p);
  }
};

// The sum of a block. If dot() accepts high nibbles unshifted, their sum is shifted instead of each code.
template <class W, int J, int End, int To>
inline I block_steps(const uint8_t* codes, const uint8_t* x, I sum) {
  if constexpr (J == End) return sum;
  else
    return block_steps<W, J + 1, End, To>(
        codes, x, W::step(sum, W::template codes<J, To>(codes), splat(read<int32_t>(x + 4 * J))));
}
template <class W>
inline I block_sum(const uint8_t* codes, const uint8_t* x, int32_t code_sum) {
  // An item that another thread has completed meanwhile may find any sum here (compiled_program.cpp): no
  // signed overflow.
  const I start = splat(int32_t(uint32_t(-W::zero) * uint32_t(code_sum)));
  if constexpr (W::most == 15 && kMaxCode >= 15 << 4)
    return add(block_steps<W, 0, 4, 0>(codes, x, start),
               shift_right<4>(block_steps<W, 4, 8, 4>(codes, x, splat(int32_t(0)))));
  else return block_steps<W, 0, 8, 0>(codes, x, start);
}

// The sums of the halves of 32 columns, of which only the sum of all codes of x is known.
template <class W>
inline void half_sums(const uint8_t* codes, const uint8_t* x, int32_t code_sum, I (&sums)[2]) {
  int32_t first = 0;
  if constexpr (W::zero != 0) first = sum(load_i8(reinterpret_cast<const int8_t*>(x)));
  sums[0] = block_steps<W, 0, 4, 0>(codes, x, splat(-W::zero * first));
  sums[1] = block_steps<W, 4, 8, 0>(codes, x, splat(-W::zero * (code_sum - first)));
}

template <class W>
struct OneRow32 {
  static inline F tile(const uint8_t* w, const uint8_t* a, int32_t columns) {
    constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
    constexpr gimbal::Activations x = gimbal::activations_of(W::x);
    constexpr int kBytes = parts.codes + int(parts.scales_of(8)) / 8;  // of 32 columns
    F total = splat(0.f);
    for (int32_t left = columns / 32; left > 0; left -= kChunk / 32) {
      const int32_t blocks = left < kChunk / 32 ? left : kChunk / 32;
      const uint8_t* codes = w + kLayout<W::type>.chunk_codes(blocks);
      F acc = splat(0.f);
      for (int32_t b = 0; b < blocks; b++, a += x.bytes, codes += parts.codes) {
        fetch_ahead<kBytes>(w + kBytes * b);
        const int32_t code_sum = read<int32_t>(a + x.sums);
        const float unit = read<float>(a);
        const uint8_t* scale = w + parts.scales_of(b);
        if constexpr (parts.group == 16) {
          I sums[2];
          half_sums<W>(codes, a + x.codes, code_sum, sums);
          for (int h = 0; h < 2; h++)
            acc = fma(to_float(sums[h]), mul(W::scale(scale + parts.scales * h), splat(unit)), acc);
        } else {
          const I sum = block_sum<W>(codes, a + x.codes, code_sum);
          acc = fma(to_float(sum), mul(W::scale(scale), splat(unit)), acc);
        }
        if constexpr (W::minimums) acc = fma(W::scale(scale + 32), splat(unit * float(code_sum)), acc);
      }
      total = add(total, acc);
      w += kLayout<W::type>.chunk_bytes(blocks);
    }
    return total;
  }
};

template <class W, int J>
inline void unpack_block(const uint8_t* codes, uint8_t* to) {
  if constexpr (J < 8) {
    store_codes(to + 64 * J, W::template codes<J>(codes));
    unpack_block<W, J + 1>(codes, to);
  }
}

template <class W>
struct Rows32 {
  static constexpr int kColumns = W::format.group < 32 ? W::format.group : 32;
  using Product = decltype(product_of<kColumns, W::most, true, W::minimums>());
  template <class Tile>
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, Tile& to) {
    unpack_as<Rows32, W>(tile, k, columns, to);
  }
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, UnpackedTile& to) {
    constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
    const uint8_t* w = tile + kLayout<W::type>.chunk_offset(columns, k);
    const int32_t blocks = (columns - k < kChunk ? columns - k : kChunk) / 32;
    const uint8_t* codes = w + kLayout<W::type>.chunk_codes(blocks);
    to.codes = W::format.bytes ? codes : to.bytes;
#pragma GCC unroll 1
    for (int32_t b = 0; b < blocks; b++, codes += parts.codes) {
      for (int h = 0; h < 32 / kColumns; h++)
        store(to.scale[32 / kColumns * b + h], W::scale(w + parts.scales_of(b) + parts.scales * h));
      if constexpr (W::minimums) store(to.minimum[b], W::scale(w + parts.scales_of(b) + 32));
      if constexpr (!W::format.bytes) unpack_block<W, 0>(codes, to.bytes + 512 * b);
    }
  }
};
