// Properties of weight formats that determine layout, packing and kernels (formats.def). Freestanding:
// kernels use them, too.
#pragma once
#include "tensor/dtype.h"

namespace gimbal {

// Quantized codes, or a plain number format.
enum class Number : uint8_t { Codes, Single, Half, Brain };
// The scales of groups of columns. Float scales (f16, bf16) are multiplied with the activations' scale
// directly. Integer scales (a byte, unsigned or signed; two numbers 2 s + 1 in a byte; scale and minimum in
// one byte) multiply the group's sum first; the block's sum is then multiplied by its unit, an f16.
enum class Scales : uint8_t { OfBlock, Halves, Brains, Unsigned, Signed, Odd, Paired };
// Lookup tables for codes: of iq4_nl, of 4-bit floats, the codebooks of iq2 and iq3_xxs.
enum class Levels : uint8_t { Plain, NonLinear, Float4, Iq2, Iq3 };

struct Format {
  Number number = Number::Codes;
  DType x = DType::F32;  // activation format of its products
  int group = 0;         // columns per scale
  bool bytes = false, nibbles = false, pairs = false,
       bits = false;     // bit planes of the codes: 8, 4, 2, 1 bits each
  bool shifts = false;   // a plane of one bit per 8 columns
  bool doubled = false;  // the code is twice the value in the planes
  Levels levels = Levels::Plain;
  int zero = 0, most = 0;  // the code of value 0; the largest code
  Scales scales = Scales::OfBlock;
  bool minimums = false;      // a second scale, added without a code
  int unit_divisor = 1;       // of the f16 in the file; a power of two
  bool tensor_scale = false;  // one f32 per tensor, after its values, instead of units
  bool two_streams = false;   // on CPUs, reading tiles from two places is faster

  bool operator==(const Format&) const = default;
};

namespace {  // so that kernel objects of several variants share no symbol of it

constexpr Format format_of(DType t) {
  using enum Number;
  using enum Scales;
  using enum Levels;
  constexpr DType A8_32 = DType::A8_32, A8_256 = DType::A8_256, A8_ROW = DType::A8_ROW;
  switch (t) {
#define GIMBAL_FORMAT(id, name, ...) \
  case DType::id:                    \
    return {__VA_ARGS__};
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
    default: return {};
  }
}

constexpr bool is_weight(const Format& f) { return f.number != Number::Codes || f.group > 0; }

// The first format with the same properties: they share kernels.
constexpr DType first_alike(DType t) {
  for (DType other : kAllDTypes)
    if (format_of(other) == format_of(t)) return other;
  return t;
}

// The scale of a whole tensor follows the values, padded to 32 bytes.
constexpr int64_t tensor_tail_bytes(DType t) { return format_of(t).tensor_scale ? 32 : 0; }

}  // namespace

}  // namespace gimbal
