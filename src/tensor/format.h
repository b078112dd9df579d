// How weight formats lie in memory for kernels: facts from which layout, packing and kernels follow
// (formats.def). Freestanding: kernels read it, too.
#pragma once
#include "tensor/dtype.h"

namespace gimbal {

// Codes, or which plain numbers.
enum class Number : uint8_t { Codes, Single, Half, Brain };
// The scale of a group of columns. Floats (f16, bf16) are multiplied with the activations' own; integers (a
// byte, unsigned or signed; two numbers 2 s + 1 in a byte; with the minimum in one byte) are, and the sum of
// the block is then multiplied by its unit, an f16.
enum class Scales : uint8_t { OfBlock, Halves, Brains, Unsigned, Signed, Odd, Paired };
// Codes that name a level: of iq4_nl, of 4-bit floats, of the codebooks of iq2 and iq3_xxs.
enum class Levels : uint8_t { Plain, NonLinear, Float4, Iq2, Iq3 };

struct Format {
  Number number = Number::Codes;
  DType x = DType::F32;  // activations that it is multiplied with
  int group = 0;         // columns with one scale
  bool bytes = false, nibbles = false, pairs = false,
       bits = false;     // planes of codes: 8, 4, 2, 1 bits of each
  bool shifts = false;   // plane of one bit for every 8 columns
  bool doubled = false;  // the code is twice what the planes hold
  Levels levels = Levels::Plain;
  int zero = 0, most = 0;  // the code that stands for 0; the largest code
  Scales scales = Scales::OfBlock;
  bool minimums = false;      // a second scale, of no code
  int unit_divisor = 1;       // of the f16 in the file, a power of two
  bool tensor_scale = false;  // one f32 for the tensor, behind its values, in place of units
  bool two_streams = false;   // on CPUs, tiles of two places come faster from memory

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

// The first format with the same facts: they share kernels.
constexpr DType first_alike(DType t) {
  for (DType other : kAllDTypes)
    if (format_of(other) == format_of(t)) return other;
  return t;
}

// A scale for a whole tensor is padded to 32 bytes, after the values.
constexpr int64_t tensor_tail_bytes(DType t) { return format_of(t).tensor_scale ? 32 : 0; }

}  // namespace

}  // namespace gimbal
