// hot: megabytes of code pass through here.
// Lengths and families of x86-64 instructions, by the opcode maps of Intel's manual (volume 2, appendix A)
// and AMD's (XOP).
#include "inspection/instructions.h"

namespace gimbal {
namespace {

// Operands that follow the opcode of the one-byte and two-byte (0F) maps.
enum : uint8_t {
  kNone = 0,
  kModRm = 1,
  kImm8 = 2,
  kImmZ = 4,  // 4 bytes, or 2 with prefix 66
  kImm16 = 8,
  kImmV = 16,  // kImmZ, or 8 bytes with REX.W
  kMoffs = 32,
  kGroup3 = 64,  // an immediate if the ModRM's middle field is 0 or 1
  kBad = 128,
};

constexpr std::array<uint8_t, 256> one_byte_map() {
  std::array<uint8_t, 256> m{};
  auto set = [&](int from, int to, uint8_t v) {
    for (int i = from; i <= to; i++) m[size_t(i)] = v;
  };
  for (int row = 0; row < 0x40; row += 8) {
    set(row, row + 3, kModRm);
    m[size_t(row + 4)] = kImm8, m[size_t(row + 5)] = kImmZ;
    set(row + 6, row + 7, kBad);  // in 64-bit mode, or a prefix
  }
  set(0x60, 0x61, kBad), m[0x63] = kModRm;
  m[0x68] = kImmZ, m[0x69] = kModRm | kImmZ, m[0x6a] = kImm8, m[0x6b] = kModRm | kImm8;
  set(0x70, 0x7f, kImm8);
  m[0x80] = m[0x83] = kModRm | kImm8, m[0x81] = kModRm | kImmZ, m[0x82] = kBad;
  set(0x84, 0x8f, kModRm);
  m[0x9a] = kBad;
  set(0xa0, 0xa3, kMoffs);
  m[0xa8] = kImm8, m[0xa9] = kImmZ;
  set(0xb0, 0xb7, kImm8), set(0xb8, 0xbf, kImmV);
  m[0xc0] = m[0xc1] = m[0xc6] = kModRm | kImm8, m[0xc7] = kModRm | kImmZ;
  m[0xc2] = m[0xca] = kImm16, m[0xc8] = kImm16 | kImm8, m[0xcd] = kImm8, m[0xce] = kBad;
  set(0xd0, 0xd3, kModRm), set(0xd4, 0xd6, kBad), set(0xd8, 0xdf, kModRm);
  set(0xe0, 0xe7, kImm8);
  m[0xe8] = m[0xe9] = kImmZ, m[0xea] = kBad, m[0xeb] = kImm8;
  m[0xf6] = kModRm | kImm8 | kGroup3, m[0xf7] = kModRm | kImmZ | kGroup3;
  set(0xfe, 0xff, kModRm);
  return m;
}

constexpr std::array<uint8_t, 256> two_byte_map() {
  std::array<uint8_t, 256> m{};
  auto set = [&](int from, int to, uint8_t v) {
    for (int i = from; i <= to; i++) m[size_t(i)] = v;
  };
  set(0x00, 0x03, kModRm), m[0x04] = m[0x0a] = m[0x0c] = m[0x0f] = kBad, m[0x0d] = kModRm;
  set(0x10, 0x23, kModRm), set(0x24, 0x27, kBad), set(0x28, 0x2f, kModRm);
  m[0x36] = m[0x39] = kBad, set(0x3b, 0x3f, kBad);
  set(0x40, 0x6f, kModRm), set(0x70, 0x73, kModRm | kImm8), set(0x74, 0x76, kModRm);
  set(0x78, 0x7f, kModRm), set(0x80, 0x8f, kImmZ), set(0x90, 0x9f, kModRm);
  m[0xa3] = m[0xa5] = m[0xab] = kModRm, m[0xa4] = m[0xac] = kModRm | kImm8;
  m[0xa6] = m[0xa7] = kBad;
  set(0xad, 0xb9, kModRm), m[0xba] = kModRm | kImm8, set(0xbb, 0xc1, kModRm);
  m[0xc2] = kModRm | kImm8, m[0xc3] = kModRm, set(0xc4, 0xc6, kModRm | kImm8), m[0xc7] = kModRm;
  set(0xd0, 0xff, kModRm);
  return m;
}

constexpr auto kOneByte = one_byte_map();
constexpr auto kTwoByte = two_byte_map();

constexpr bool in(unsigned v, unsigned low, unsigned high) { return v - low <= high - low; }

struct Instruction {
  unsigned map = 0, op = 0;           // map: 1 0F, 2 0F38, 3 0F3A, 5, 6
  unsigned prefix = 0;                // 0, 1: 66, 2: F3, 3: F2
  unsigned length = 0;                // of the vector: 0: 128 bits, 1: 256, 2: 512
  bool w = false, registers = false;  // registers: no operand in memory
};

void legacy(const Instruction& i, InstructionCounts& to) {
  const unsigned op = i.op, p = i.prefix;
  if (i.map == 1) {
    if ((p == 3 && (op == 0x12 || op == 0xf0)) || (p == 2 && (op == 0x12 || op == 0x16)) ||
        ((p == 1 || p == 3) && (op == 0x7c || op == 0x7d || op == 0xd0)))
      to.add(InstructionFamily::Sse3);
  } else if (i.map == 2) {
    if (op <= 0x0b || in(op, 0x1c, 0x1e)) to.add(InstructionFamily::Ssse3);
    else if (p == 1 && (op == 0x10 || op == 0x14 || op == 0x15 || op == 0x17 || in(op, 0x20, 0x25) ||
                        in(op, 0x28, 0x2b) || in(op, 0x30, 0x35) || in(op, 0x38, 0x41)))
      to.add(InstructionFamily::Sse41);
    else if ((p == 1 && op == 0x37) || (p == 3 && in(op, 0xf0, 0xf1))) to.add(InstructionFamily::Sse42);
    else if (p == 1 && in(op, 0xdb, 0xdf)) to.add(InstructionFamily::Aes);
  } else if (i.map == 3) {
    if (op == 0x0f) to.add(InstructionFamily::Ssse3);
    else if (p == 1 && (in(op, 0x08, 0x0e) || in(op, 0x14, 0x17) || in(op, 0x20, 0x22) || in(op, 0x40, 0x42)))
      to.add(InstructionFamily::Sse41);
    else if (p == 1 && in(op, 0x60, 0x63)) to.add(InstructionFamily::Sse42);
    else if (p == 1 && (op == 0xdf || op == 0x44)) to.add(InstructionFamily::Aes);
  }
}

// AVX2 is what works on 256 bits of integers, and some new instructions.
bool is_avx2(const Instruction& i) {
  const unsigned op = i.op;
  if (i.prefix != 1) return i.map == 1 && op == 0x70 && i.length;
  if (i.map == 1)
    return i.length && (in(op, 0x60, 0x6d) || in(op, 0x70, 0x76) || in(op, 0xd1, 0xd5) || op == 0xd7 ||
                        in(op, 0xd8, 0xe5) || in(op, 0xe8, 0xef) || in(op, 0xf1, 0xf6) || in(op, 0xf8, 0xfe));
  if (i.map == 2)
    return (i.length && (op <= 0x0b || in(op, 0x1c, 0x1e) || in(op, 0x20, 0x25) || in(op, 0x28, 0x2b) ||
                         in(op, 0x30, 0x35) || in(op, 0x37, 0x40))) ||
           op == 0x16 || op == 0x36 || in(op, 0x45, 0x47) || in(op, 0x58, 0x5a) || in(op, 0x78, 0x79) ||
           op == 0x8c || op == 0x8e || in(op, 0x90, 0x93) || (in(op, 0x18, 0x19) && i.registers);
  return in(op, 0x00, 0x02) || in(op, 0x38, 0x39) || op == 0x46 ||
         (i.length && (op == 0x0e || op == 0x0f || op == 0x42 || op == 0x4c));
}

void vex(const Instruction& i, InstructionCounts& to) {
  const unsigned op = i.op, p = i.prefix;
  if (i.map == 1 && (in(op, 0x41, 0x4b) || in(op, 0x90, 0x93) || in(op, 0x98, 0x99)))
    return to.add(InstructionFamily::Avx512);
  if (i.map == 3 && in(op, 0x30, 0x33)) return to.add(InstructionFamily::Avx512);  // of masks, as those above
  if (i.map == 2) {
    if (p == 1 && (in(op, 0x96, 0x9f) || in(op, 0xa6, 0xaf) || in(op, 0xb6, 0xbf)))
      return to.add(InstructionFamily::Fma);
    if (p == 1 && op == 0x13) return to.add(InstructionFamily::F16c);
    if (in(op, 0xf5, 0xf7) || op == 0xf2 || op == 0xf3) {
      if (op == 0xf5 || op == 0xf6 || (op == 0xf7 && p)) to.add(InstructionFamily::Bmi2);
      return;  // the others are BMI1
    }
    if (p == 1 && in(op, 0x50, 0x53)) return to.add(InstructionFamily::AvxVnni);
    if (op == 0x49 || op == 0x4b || op == 0x5c || op == 0x5e || op == 0x6c)
      return to.add(InstructionFamily::Amx);
    if (p == 1 && in(op, 0xdb, 0xdf)) return to.add(InstructionFamily::Aes);
  }
  if (i.map == 3) {
    if (p == 1 && op == 0x1d) return to.add(InstructionFamily::F16c);
    if (p == 3 && op == 0xf0) return to.add(InstructionFamily::Bmi2);
    if (p == 1 && (op == 0xdf || op == 0x44)) return to.add(InstructionFamily::Aes);
  }
  to.add(is_avx2(i) ? InstructionFamily::Avx2 : InstructionFamily::Avx);
}

void evex(const Instruction& i, InstructionCounts& to) {
  const unsigned op = i.op, p = i.prefix;
  if (i.map == 5 || i.map == 6) return to.add(InstructionFamily::Avx512Fp16);
  if (i.map == 2) {
    if (p == 1 && in(op, 0x50, 0x53)) return to.add(InstructionFamily::Avx512Vnni);
    if ((p == 2 && op == 0x52) || ((p == 2 || p == 3) && op == 0x72))
      return to.add(InstructionFamily::Avx512Bf16);
    if (p == 1 && (((op == 0x75 || op == 0x7d || op == 0x8d) && !i.w) || op == 0x83))
      return to.add(InstructionFamily::Avx512Vbmi);
  }
  to.add(InstructionFamily::Avx512);
}

// Bytes of a ModRM, what follows it, and whether it names registers alone. 0: not inside.
size_t modrm_bytes(std::span<const uint8_t> c, size_t at, bool& registers) {
  if (at >= c.size()) return 0;
  const unsigned m = c[at], mod = m >> 6, rm = m & 7;
  registers = mod == 3;
  if (registers) return 1;
  size_t n = 1;
  if (rm == 4) {
    if (at + 1 >= c.size()) return 0;
    n++;
    if (mod == 0 && (c[at + 1] & 7) == 5) n += 4;
  } else if (mod == 0 && rm == 5) {
    n += 4;
  }
  return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

// VEX (2 or 3 bytes) and EVEX: the payload's fields, then opcode, ModRM, immediate.
size_t vector_instruction(std::span<const uint8_t> c, size_t at, InstructionCounts& to) {
  const uint8_t lead = c[at];
  const size_t payload = lead == 0xc5 ? 1 : lead == 0xc4 ? 2 : 3;
  if (at + payload + 2 > c.size()) return 0;
  Instruction i;
  const uint8_t last = c[at + (lead == 0x62 ? 2 : payload)];
  i.map = lead == 0xc5 ? 1 : c[at + 1] & (lead == 0x62 ? 7 : 31);
  i.w = lead != 0xc5 && (last & 0x80);
  i.prefix = last & 3;
  i.length = lead == 0x62 ? c[at + 3] >> 5 & 3 : last >> 2 & 1;
  const bool known =
      lead == 0x62 ? (in(i.map, 1, 3) || in(i.map, 5, 6)) && (last & 4) && !(c[at + 1] & 8) : in(i.map, 1, 3);
  if (!known) return 0;
  at += payload + 1;
  i.op = c[at++];
  if (i.map == 1 && i.op == 0x77 && lead != 0x62) return to.add(InstructionFamily::Avx), at;
  const size_t operand = modrm_bytes(c, at, i.registers);
  if (!operand) return 0;
  at += operand;
  if (i.map == 3 || (i.map == 1 && (in(i.op, 0x70, 0x73) || i.op == 0xc2 || in(i.op, 0xc4, 0xc6)))) at++;
  if (at > c.size()) return 0;
  lead == 0x62 ? evex(i, to) : vex(i, to);
  return at;
}

size_t xop(std::span<const uint8_t> c, size_t at) {
  if (at + 4 > c.size()) return 0;
  const unsigned map = c[at + 1] & 31;
  at += 4;
  bool registers;
  const size_t operand = modrm_bytes(c, at, registers);
  return operand ? at + operand + (map == 8 ? 1 : map == 10 ? 4 : 0) : 0;
}

}  // namespace

size_t decode_x86_64(std::span<const uint8_t> c, InstructionCounts& to) {
  size_t at = 0;
  bool small = false, short_address = false, wide = false;
  Instruction i;
  for (; at < c.size() && at < 14; at++) {
    const uint8_t b = c[at];
    if (b == 0x66) small = true, i.prefix = i.prefix ? i.prefix : 1;
    else if (b == 0xf3) i.prefix = 2;
    else if (b == 0xf2) i.prefix = 3;
    else if (b == 0x67) short_address = true;
    else if (b != 0xf0 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 && b != 0x64 && b != 0x65) break;
  }
  if (at < c.size() && (c[at] & 0xf0) == 0x40) wide = c[at++] & 8;
  if (at >= c.size()) return 0;
  const uint8_t b = c[at];
  if (b == 0xc4 || b == 0xc5 || b == 0x62) return vector_instruction(c, at, to);
  if (b == 0x8f && at + 1 < c.size() && (c[at + 1] & 31) >= 8) return xop(c, at);
  uint8_t kind;
  if (b != 0x0f) {
    kind = kOneByte[b];
    at++;
  } else {
    if (++at >= c.size()) return 0;
    i.map = 1, i.op = c[at++];
    kind = kTwoByte[i.op];
    if (i.op == 0x38 || i.op == 0x3a) {
      if (at >= c.size()) return 0;
      i.map = i.op == 0x38 ? 2 : 3;
      kind = uint8_t(i.map == 3 ? kModRm | kImm8 : kModRm);
      i.op = c[at++];
    }
  }
  if (kind & kBad) return 0;
  if (kind & kModRm) {
    const size_t operand = modrm_bytes(c, at, i.registers);
    if (!operand) return 0;
    if ((kind & kGroup3) && (c[at] >> 3 & 7) > 1) kind = kModRm;
    at += operand;
  }
  if (kind & kImm8) at++;
  if (kind & kImm16) at += 2;
  if (kind & kImmZ) at += small && !(b == 0xe8 || b == 0xe9 || b == 0x0f) ? 2 : 4;
  if (kind & kImmV) at += wide ? 8 : small ? 2 : 4;
  if (kind & kMoffs) at += short_address ? 4 : 8;
  if (at > c.size()) return 0;
  if (i.map) legacy(i, to);
  return at;
}

void count_x86_64(std::span<const uint8_t> code, size_t skip, InstructionCounts& to) {
  constexpr size_t kLongest = 15;
  InstructionCounts ignored;
  while (!code.empty()) {
    const size_t n = decode_x86_64(code, skip ? ignored : to);
    if (!n && code.size() < kLongest) return;  // it may continue behind the piece
    if (!n && !skip) to.undecoded++;
    if (skip) skip--;
    code = code.subspan(n ? n : 1);
  }
}

}  // namespace gimbal
