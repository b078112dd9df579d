// Formats in blocks as numbers. Their meaning is that of tensor/quant/*.inc; the tensor tests of each GPU
// backend (tests/gpu/blocks_checks.h) compare every format.
#include "gpu/tensors/block_formats.h"

#include <bit>

namespace gimbal::gpu {
namespace {

constexpr uint16_t kIq1[] = {
#include "tensor/quant/iq1_grid.def"
};
constexpr uint16_t kIq2Xxs[] = {
#include "tensor/quant/iq2_xxs_grid.def"
};
constexpr uint16_t kIq2Xs[] = {
#include "tensor/quant/iq2_xs_grid.def"
};
constexpr uint16_t kIq2S[] = {
#include "tensor/quant/iq2_s_grid.def"
};
constexpr uint16_t kIq3Xxs[] = {
#include "tensor/quant/iq3_xxs_grid.def"
};
constexpr uint16_t kIq3S[] = {
#include "tensor/quant/iq3_s_grid.def"
};
constexpr int8_t kSignedNl[] = {
#include "tensor/quant/iq4_nl_levels.def"
};
constexpr int8_t kSignedFp4[] = {
#include "tensor/quant/fp4_levels.def"
};
struct Sixteen {
  uint16_t at[16];
  constexpr explicit Sixteen(const int8_t (&levels)[16]) : at() {
    for (int i = 0; i < 16; i++) at[i] = uint16_t(levels[i]);
  }
};
constexpr Sixteen kNl(kSignedNl), kFp4(kSignedFp4);
constexpr uint16_t kBothSigns[] = {0xffff, 1};

// A field of value j: `cells` of them lie `step` bits apart in a byte or word, and runs of 2^run neighbours
// lie in as many bytes; 2^apart bytes lie between bytes. Of its group instead: `of_group`.
struct Field {
  uint32_t at = 0, bits = 0, skip = 0, run = 0, cells = 0, step = 0, apart = 0, shift = 0, of_group = 0;
};
constexpr uint32_t word_of(const Field& f) {
  return f.at | f.skip << 8 | f.run << 12 | f.cells << 15 | f.step << 17 | f.apart << 21 | f.shift << 23 |
         f.bits << 26 | f.of_group << 31;
}
constexpr uint32_t log2_of(uint32_t n) { return uint32_t(std::countr_zero(n)); }
// Codes of 4, 2 or 1 bits, of which one byte has those `run` values apart.
constexpr Field nibbles(uint32_t at, uint32_t run) { return {at, 4, 0, log2_of(run), 1, 4}; }
constexpr Field pairs(uint32_t at, uint32_t run) { return {at, 2, 0, log2_of(run), 2, 2}; }
constexpr Field single_bits(uint32_t at, uint32_t run) { return {at, 1, 0, log2_of(run), 3, 1}; }
constexpr Field bytes(uint32_t at) { return {.at = at, .bits = 8}; }
// The same for all values: an f16.
constexpr Field half(uint32_t at) { return {.at = at, .bits = 16, .skip = 8}; }
constexpr Field one_nibble(uint32_t at) { return {.at = at, .bits = 4, .skip = 8, .shift = 4}; }
constexpr Field by_group(Field f) { return f.of_group = 1, f; }
// Of the eight, or four, neighbours that a point of a grid stands for.
constexpr Field of_8(Field f) { return f.skip = 3, f; }
constexpr Field of_4(Field f) { return f.skip = 2, f; }
// Four fields of 7 bits in a word of 32, one for each group of 32 values.
constexpr Field seven_signs(uint32_t at, uint32_t apart) { return of_8({at, 7, 0, 0, 2, 7, apart}); }

enum Levels : uint32_t { Plain, Table, Ternary, Iq2, Iq3Xxs, Iq3S, Iq1 };
enum UnitForm : uint32_t { Half, Power, Small, Parts };
enum Signs : uint32_t { None, Each, Even };

// As named in kernels/block_fields.inc.
struct BlockFacts {
  Field code = {}, code_top = {}, sign = {}, scale = {}, scale_top = {}, offset = {}, offset_top = {},
        unit = {}, offset_unit = {}, scale_4 = {}, scale_top_4 = {}, offset_4 = {}, offset_top_4 = {};
  uint32_t values = 32, low_bits = 4, code_turn = 0, zero = 0, levels = Plain, unit_form = Half;
  float unit_factor = 1, offset_factor = 0;
  uint32_t group_shift = 5, scale_turn = 0;
  int32_t scale_times = 0, scale_plus = 1;
  uint32_t signs = None, offset_plus = 0;
  std::span<const uint16_t> table = {};
};

BlockFacts k_facts(Field low, Field top) {
  BlockFacts f{.code = low, .code_top = top, .unit = half(0), .offset_unit = half(2), .values = 256};
  f.scale = by_group({.at = 4, .bits = 6}), f.offset = by_group({.at = 8, .bits = 6});
  f.scale_4 = by_group({.at = 8, .bits = 4}), f.scale_top_4 = by_group({.at = 0, .bits = 2, .shift = 6});
  f.offset_4 = by_group({.at = 8, .bits = 4, .shift = 4});
  f.offset_top_4 = by_group({.at = 4, .bits = 2, .shift = 6});
  f.offset_factor = 1, f.scale_times = 1, f.scale_plus = 0;
  return f;
}
// A grid of 8 or 4 neighbours; scales 2 s + 1.
BlockFacts grid_facts(Field low, Field top, uint32_t levels, std::span<const uint16_t> table, float factor) {
  BlockFacts f{.code = low, .code_top = top, .unit = half(0), .values = 256, .low_bits = 8, .levels = levels};
  f.unit_factor = factor, f.scale_times = 2, f.scale_plus = 1, f.table = table;
  return f;
}

BlockFacts facts_of(DType t) {
  const Field low_nibbles_of_scale = by_group(nibbles(0, 1));
  auto scales_at = [&](uint32_t at) {
    Field f = low_nibbles_of_scale;
    return f.at = at, f;
  };
  BlockFacts f;
  switch (t) {
    case DType::Q8_0: return {.code = bytes(2), .unit = half(0), .code_turn = 0x80, .zero = 128};
    case DType::Q4_0: return {.code = nibbles(2, 16), .unit = half(0), .zero = 8};
    case DType::Q4_1:
      return {.code = nibbles(4, 16),
              .unit = half(0),
              .offset_unit = half(2),
              .offset_factor = -1,
              .offset_plus = 1};
    case DType::Q5_0:
      return {.code = nibbles(6, 16), .code_top = single_bits(2, 1), .unit = half(0), .zero = 16};
    case DType::Q5_1:
      return {.code = nibbles(8, 16),
              .code_top = single_bits(4, 1),
              .unit = half(0),
              .offset_unit = half(2),
              .offset_factor = -1,
              .offset_plus = 1};
    case DType::IQ4_NL: return {.code = nibbles(2, 16), .unit = half(0), .levels = Table, .table = kNl.at};
    case DType::MXFP4:
      return {.code = nibbles(1, 16),
              .unit = {.at = 0, .bits = 8, .skip = 8},
              .levels = Table,
              .unit_form = Power,
              .table = kFp4.at};
    case DType::Q2_0: return {.code = pairs(2, 1), .unit = half(0), .values = 64, .zero = 1};
    case DType::NVFP4:
      return {.code = nibbles(4, 8),
              .unit = by_group(bytes(0)),
              .values = 64,
              .levels = Table,
              .unit_form = Small,
              .group_shift = 4,
              .table = kFp4.at};
    case DType::Q1_0:
      return {
          .code = single_bits(2, 1), .unit = half(0), .values = 128, .levels = Table, .table = kBothSigns};
    case DType::Q2_K:
      f = {.code = pairs(16, 32), .unit = half(80), .offset_unit = half(82), .values = 256, .group_shift = 4};
      f.scale = by_group({.at = 0, .bits = 4}), f.offset = by_group({.at = 0, .bits = 4, .shift = 4});
      f.offset_factor = 1, f.scale_times = 1, f.scale_plus = 0;
      return f;
    case DType::Q3_K:
      f = {.code = pairs(32, 32),
           .code_top = single_bits(0, 32),
           .unit = half(108),
           .values = 256,
           .low_bits = 2,
           .zero = 4,
           .group_shift = 4,
           .scale_times = 1,
           .scale_plus = -32};
      f.scale = by_group(nibbles(96, 8)), f.scale_top = by_group(pairs(104, 4));
      return f;
    case DType::Q4_K: return k_facts(nibbles(16, 32), {});
    case DType::Q5_K: return k_facts(nibbles(48, 32), single_bits(16, 32));
    case DType::Q6_K:
      return {.code = nibbles(0, 64),
              .code_top = pairs(128, 32),
              .scale = by_group(bytes(192)),
              .unit = half(208),
              .values = 256,
              .zero = 32,
              .group_shift = 4,
              .scale_turn = 0x80,
              .scale_times = 1,
              .scale_plus = -128};
    case DType::IQ4_XS:
      f = {.code = nibbles(8, 16),
           .unit = half(0),
           .values = 256,
           .levels = Table,
           .scale_times = 1,
           .scale_plus = -32,
           .table = kNl.at};
      f.scale = scales_at(4), f.scale_top = by_group(pairs(2, 1));
      return f;
    case DType::TQ1_0: return {.code = bytes(0), .unit = half(52), .values = 256, .levels = Ternary};
    case DType::TQ2_0: return {.code = pairs(0, 32), .unit = half(64), .values = 256, .zero = 1};
    // The indices of a group of 32 lie before its word of signs and scale.
    case DType::IQ2_XXS:
      f = grid_facts({.at = 2, .bits = 8, .skip = 3, .cells = 2, .step = 8, .apart = 3}, {}, Iq2, kIq2Xxs,
                     0.125f);
      f.sign = seven_signs(6, 3), f.signs = Even;
      f.scale = by_group({.at = 9, .bits = 4, .apart = 3, .shift = 4});
      return f;
    case DType::IQ2_XS:
      f = grid_facts(of_8({.at = 2, .bits = 8, .apart = 1}), of_8({.at = 3, .bits = 1, .apart = 1}), Iq2,
                     kIq2Xs, 0.125f);
      f.sign = of_8({.at = 3, .bits = 7, .apart = 1, .shift = 1}), f.signs = Even;
      f.scale = scales_at(66), f.group_shift = 4;
      return f;
    case DType::IQ2_S:
      f = grid_facts(of_8(bytes(2)), of_8(pairs(66, 1)), Iq2, kIq2S, 0.125f);
      f.sign = single_bits(34, 1), f.signs = Each, f.scale = scales_at(74), f.group_shift = 4;
      return f;
    case DType::IQ3_XXS:
      f = grid_facts(of_4(bytes(2)), {}, Iq3Xxs, kIq3Xxs, 0.25f);
      f.sign = seven_signs(66, 2), f.signs = Even;
      f.scale = by_group({.at = 69, .bits = 4, .apart = 2, .shift = 4});
      return f;
    case DType::IQ3_S:
      f = grid_facts(of_4(bytes(2)), of_4(single_bits(66, 1)), Iq3S, kIq3S, 1);
      f.sign = single_bits(74, 1), f.signs = Each, f.scale = scales_at(106);
      return f;
    case DType::IQ1_S:
      f = grid_facts(of_8(bytes(2)), of_8({34, 3, 0, 0, 2, 3, 1}), Iq1, kIq1, 0.125f);
      f.sign = by_group({.at = 35, .bits = 1, .apart = 1, .shift = 7});
      f.scale = by_group({.at = 35, .bits = 3, .apart = 1, .shift = 4});
      return f;
    case DType::IQ1_M:
      f = grid_facts(of_8(bytes(0)), of_8({32, 3, 0, 0, 1, 4}), Iq1, kIq1, 0.125f);
      f.sign = of_8({.at = 32, .bits = 1, .cells = 1, .step = 4, .shift = 3});
      f.scale = by_group({48, 3, 0, 0, 2, 3, 1}), f.group_shift = 4, f.unit_form = Parts;
      f.unit = one_nibble(49), f.offset_unit = one_nibble(51);
      f.offset = one_nibble(53), f.offset_top = one_nibble(55);
      return f;
    default: return f;
  }
}

}  // namespace

BlockFormat block_format(DType t) {
  const BlockFacts f = facts_of(t);
  BlockFormat out{};
  uint32_t* to = out.number;
  for (const Field& field : {f.code, f.code_top, f.sign, f.scale, f.scale_top, f.offset, f.offset_top, f.unit,
                             f.offset_unit, f.scale_4, f.scale_top_4, f.offset_4, f.offset_top_4})
    *to++ = word_of(field);
  const uint32_t numbers[] = {f.values,
                              uint32_t(info(t).bytes),
                              f.low_bits,
                              f.code_turn,
                              f.zero,
                              f.levels,
                              f.unit_form,
                              std::bit_cast<uint32_t>(f.unit_factor),
                              f.offset_factor == 0 ? 0 : std::bit_cast<uint32_t>(f.offset_factor),
                              f.group_shift,
                              f.scale_turn,
                              uint32_t(f.scale_times),
                              uint32_t(f.scale_plus),
                              f.signs,
                              f.offset_plus};
  static_assert(std::size(numbers) + BlockFormat::kFields == BlockFormat::kNumbers);
  for (uint32_t n : numbers) *to++ = n;
  out.table = f.table;
  return out;
}

}  // namespace gimbal::gpu
