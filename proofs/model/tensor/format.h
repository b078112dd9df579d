// The formats of KV caches, for the model checker, which cannot read the tables of src/tensor/format.h.
// scripts/check/proofs.py compares the facts. Proofs use no other format of weights.
#pragma once
#include <cstdint>

namespace gimbal {

enum class DType : uint8_t { F32, F16, BF16, Q8_0, Q5_0, Q4_1, Q4_0, IQ4_NL, A8_32, A8_256, A8_ROW };
enum class Number : uint8_t { Codes, Single, Half, Brain };
enum class Scales : uint8_t { OfBlock, Halves, Brains, Unsigned, Signed, Odd, Paired };
struct Format {
  DType x;
  Number number;
  bool tensor_scale, minimums;
  int bytes, nibbles, pairs, bits, shifts, group;
  Scales scales;
};
constexpr Format format_of(DType t) {
  Format f{};
  f.number = t == DType::F32    ? Number::Single
             : t == DType::F16  ? Number::Half
             : t == DType::BF16 ? Number::Brain
                                : Number::Codes;
  f.bytes = t == DType::Q8_0;
  f.nibbles = t == DType::Q5_0 || t == DType::Q4_1 || t == DType::Q4_0 || t == DType::IQ4_NL;
  f.bits = t == DType::Q5_0;
  f.minimums = t == DType::Q4_1;
  return f;
}

}  // namespace gimbal
