// Weights in blocks of 32 against a8_32: f32 scale, i32 sum of the codes, 32 codes. Per block one exact
// integer dot product and one FMA; a format with minimums adds one FMA of the minimum and the activations'
// sum.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/product.h"

struct Nibbles {
  template <int J, int To = 0>
  static inline Codes codes(const uint8_t* p) {
    return field<4 * (J / 4), To, 4>(load_codes(p + 64 * (J % 4)));
  }
  static inline int code(const uint8_t* p, int lane, int k) {
    return p[64 * (k / 4 % 4) + 4 * lane + k % 4] >> (k / 16 * 4) & 15;
  }
};
struct NibblesAndBit {
  template <int J>
  static inline Codes codes(const uint8_t* p) {
    return either(Nibbles::codes<J>(p), field<J, 4, 1>(load_codes(p + 256)));
  }
  static inline int code(const uint8_t* p, int lane, int k) {
    return Nibbles::code(p, lane, k) | (p[256 + 4 * lane + k % 4] >> (k / 4) & 1) << 4;
  }
};

// Code - Zero is the value in units of the scale; codes go up to Most.
template <int Zero, int Most>
struct Narrow {
  static constexpr int zero = Zero, most = Most;
  static inline I step(I acc, Codes c, I a) { return dot(acc, c, a); }
  static inline int level(int code) { return code - Zero; }
};
// Codes of 8 bits stand for code - 128.
struct Wide {
  static constexpr int zero = kWideZero, most = 255;
  static inline I step(I acc, Codes c, I a) { return dot_wide(acc, c, a); }
};
struct HalfScale {
  static inline F scale(const uint8_t* p) { return load(reinterpret_cast<const uint16_t*>(p)); }
  static inline float scale(const uint8_t* p, int lane) {
    return half_to_float(read<uint16_t>(p + 2 * lane));
  }
};

struct Q8_0 : Wide, HalfScale {
  static constexpr DType type = DType::Q8_0, x = DType::A8_32;
  static constexpr bool minimums = false;
  template <int J>
  static inline Codes codes(const uint8_t* p) {
    return load_codes(p + 64 * J);
  }
  static inline int code(const uint8_t* p, int lane, int k) { return p[64 * (k / 4) + 4 * lane + k % 4]; }
  static inline int level(int code) { return code - 128; }
};
struct Q4_0 : Nibbles, Narrow<8, 15>, HalfScale {
  static constexpr DType type = DType::Q4_0, x = DType::A8_32;
  static constexpr bool minimums = false;
};
struct Q4_1 : Nibbles, Narrow<0, 15>, HalfScale {
  static constexpr DType type = DType::Q4_1, x = DType::A8_32;
  static constexpr bool minimums = true;
};
struct Q5_0 : NibblesAndBit, Narrow<16, 31>, HalfScale {
  static constexpr DType type = DType::Q5_0, x = DType::A8_32;
  static constexpr bool minimums = false;
};
struct Q5_1 : NibblesAndBit, Narrow<0, 31>, HalfScale {
  static constexpr DType type = DType::Q5_1, x = DType::A8_32;
  static constexpr bool minimums = true;
};

// Codes that name one of 16 levels; the tables hold level + 128.
constexpr int8_t kNonLinear[16] = {
#include "tensor/quant/iq4_nl_levels.def"
};
constexpr int8_t kFloat4[16] = {
#include "tensor/quant/fp4_levels.def"
};
struct Table16 {
  uint8_t entry[16];
  constexpr explicit Table16(const int8_t* level, int zero = 128) : entry{} {
    for (int i = 0; i < 16; i++) entry[i] = uint8_t(level[i] + zero);
  }
};
constexpr Table16 kNonLinearTable(kNonLinear), kFloat4Table(kFloat4);

struct IQ4_NL : Wide, HalfScale {
  static constexpr DType type = DType::IQ4_NL, x = DType::A8_32;
  static constexpr bool minimums = false;
  template <int J>
  static inline Codes codes(const uint8_t* p) {
    return lookup(Nibbles::codes<J>(p), kNonLinearTable.entry);
  }
  static inline int code(const uint8_t* p, int lane, int k) { return Nibbles::code(p, lane, k); }
  static inline int level(int code) { return kNonLinear[code]; }
};
struct MXFP4 : Wide {
  static constexpr DType type = DType::MXFP4, x = DType::A8_32;
  static constexpr bool minimums = false;
  template <int J>
  static inline Codes codes(const uint8_t* p) {
    return lookup(Nibbles::codes<J>(p), kFloat4Table.entry);
  }
  static inline int code(const uint8_t* p, int lane, int k) { return Nibbles::code(p, lane, k); }
  static inline int level(int code) { return kFloat4[code]; }
  static inline F scale(const uint8_t* p) { return load_bf16(reinterpret_cast<const uint16_t*>(p)); }
  static inline float scale(const uint8_t* p, int lane) {
    return bf16_to_float(read<uint16_t>(p + 2 * lane));
  }
};

// The sum of a block. Where dot() takes high nibbles in their place, their sum is shifted, and not each of
// them.
template <class W, int J, int End, int To>
inline I block_steps(const uint8_t* codes, const uint8_t* a, I sum) {
  if constexpr (J == End) return sum;
  else {
    Codes c;
    if constexpr (To > 0) c = W::template codes<J, To>(codes);
    else c = W::template codes<J>(codes);
    return block_steps<W, J + 1, End, To>(codes, a, W::step(sum, c, splat(read<int32_t>(a + 8 + 4 * J))));
  }
}
template <class W>
inline I block_sum(const uint8_t* codes, const uint8_t* a, int32_t code_sum) {
  // A share that others have done in the meantime may find any sum here (compiled.cpp): no signed overflow.
  const I start = splat(int32_t(uint32_t(-W::zero) * uint32_t(code_sum)));
  if constexpr (W::most == 15 && kMostCode >= 15 << 4)
    return add(block_steps<W, 0, 4, 0>(codes, a, start),
               shift_right<4>(block_steps<W, 4, 8, 4>(codes, a, splat(int32_t(0)))));
  else return block_steps<W, 0, 8, 0>(codes, a, start);
}

template <class W>
struct OneRow32 {
  static inline F tile(const uint8_t* w, const uint8_t* a, int32_t columns) {
    constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
    F total = splat(0.f);
    for (int32_t left = columns / 32; left > 0; left -= kChunk / 32) {
      const int32_t blocks = left < kChunk / 32 ? left : kChunk / 32;
      const uint8_t* codes = w + gimbal::cpu::chunk_codes(W::type, blocks);
      F acc = splat(0.f);
      for (int32_t b = 0; b < blocks; b++, a += 40, codes += parts.codes) {
        fetch_ahead<parts.codes + parts.scales>(w + (parts.codes + parts.scales) * b);
        const int32_t code_sum = read<int32_t>(a + 4);
        const float unit = read<float>(a);
        const I sum = block_sum<W>(codes, a, code_sum);
        acc = fma(to_float(sum), mul(W::scale(w + parts.scales * b), splat(unit)), acc);
        if constexpr (W::minimums)
          acc = fma(W::scale(w + parts.scales * b + 32), splat(unit * float(code_sum)), acc);
      }
      total = add(total, acc);
      w += gimbal::cpu::chunk_bytes(W::type, blocks);
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
  using Product = ::CPU_VARIANT::Product<32, product_steps(W::most), true, W::minimums>;
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, UnpackedTile& to) {
    constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
    const uint8_t* w = tile + gimbal::cpu::chunk_offset(W::type, columns, k);
    const int32_t blocks = (columns - k < kChunk ? columns - k : kChunk) / 32;
    const uint8_t* codes = w + gimbal::cpu::chunk_codes(W::type, blocks);
    to.codes = parts.codes == 512 ? codes : to.bytes;
#pragma GCC unroll 1
    for (int32_t b = 0; b < blocks; b++, codes += parts.codes) {
      store(to.scale[b], W::scale(w + parts.scales * b));
      if constexpr (W::minimums) store(to.minimum[b], W::scale(w + parts.scales * b + 32));
      if constexpr (parts.codes < 512) unpack_block<W, 0>(codes, to.bytes + 512 * b);
    }
  }
};

// One row of a packed matrix as numbers: the same as tensor/quant.h decodes.
template <class W>
inline void blocks32_row(const uint8_t* w, int lane, int32_t columns, float* y) {
  constexpr gimbal::cpu::Parts32 parts = gimbal::cpu::parts32(W::type);
  for (int32_t left = columns / 32; left > 0; left -= kChunk / 32) {
    const int32_t blocks = left < kChunk / 32 ? left : kChunk / 32;
    const uint8_t* codes = w + gimbal::cpu::chunk_codes(W::type, blocks);
    for (int32_t b = 0; b < blocks; b++, codes += parts.codes, y += 32) {
      const float scale = W::scale(w + parts.scales * b, lane);
      for (int k = 0; k < 32; k++) {
        y[k] = float(W::level(W::code(codes, lane, k))) * scale;
        if constexpr (W::minimums) y[k] = y[k] + W::scale(w + parts.scales * b + 32, lane);
      }
    }
    w += gimbal::cpu::chunk_bytes(W::type, blocks);
  }
}
