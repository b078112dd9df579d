// Families of single instructions. The bytes and their meanings are those of GNU as and objdump 2.40.
#include "inspection/instructions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gimbal {
namespace {

using F = InstructionFamily;

struct Case {
  const char* text;
  std::vector<uint8_t> bytes;
  F family;  // Count: a basic instruction
};

void expect_family(const Case& c, const InstructionCounts& counts) {
  for (size_t f = 0; f < size_t(F::Count); f++)
    EXPECT_EQ(counts.of[f], F(f) == c.family ? 1u : 0u) << c.text << ", " << name_of(F(f));
}

TEST(InstructionFamilies, OfX86) {
  const std::vector<Case> cases = {
      {"ret", {0xc3}, F::Count},
      {"addps %xmm1,%xmm0", {0x0f, 0x58, 0xc1}, F::Count},
      {"movabs $0x1122334455667788,%rax",
       {0x48, 0xb8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11},
       F::Count},
      {"mov %eax,0x12345678(%rip)", {0x89, 0x05, 0x78, 0x56, 0x34, 0x12}, F::Count},
      {"testl $0x1,(%rdi)", {0xf7, 0x07, 0x01, 0x00, 0x00, 0x00}, F::Count},
      {"notl (%rdi)", {0xf7, 0x17}, F::Count},
      {"movw $0x1,(%rdi,%rax,4)", {0x66, 0xc7, 0x04, 0x87, 0x01, 0x00}, F::Count},
      {"addpd %xmm1,%xmm0", {0x66, 0x0f, 0x58, 0xc1}, F::Count},
      {"addsd %xmm1,%xmm0", {0xf2, 0x0f, 0x58, 0xc1}, F::Count},
      {"movlpd (%rdi),%xmm0", {0x66, 0x0f, 0x12, 0x07}, F::Count},
      {"movddup %xmm1,%xmm0", {0xf2, 0x0f, 0x12, 0xc1}, F::Sse3},
      {"movsldup %xmm1,%xmm0", {0xf3, 0x0f, 0x12, 0xc1}, F::Sse3},
      {"movshdup %xmm1,%xmm0", {0xf3, 0x0f, 0x16, 0xc1}, F::Sse3},
      {"lddqu (%rdi),%xmm0", {0xf2, 0x0f, 0xf0, 0x07}, F::Sse3},
      {"addsubpd %xmm1,%xmm0", {0x66, 0x0f, 0xd0, 0xc1}, F::Sse3},
      {"hsubps %xmm1,%xmm0", {0xf2, 0x0f, 0x7d, 0xc1}, F::Sse3},
      {"haddps %xmm1,%xmm0", {0xf2, 0x0f, 0x7c, 0xc1}, F::Sse3},
      {"pshufb %xmm1,%xmm0", {0x66, 0x0f, 0x38, 0x00, 0xc1}, F::Ssse3},
      {"pmulld %xmm1,%xmm0", {0x66, 0x0f, 0x38, 0x40, 0xc1}, F::Sse41},
      {"pcmpgtq %xmm1,%xmm0", {0x66, 0x0f, 0x38, 0x37, 0xc1}, F::Sse42},
      {"crc32b %al,%edx", {0xf2, 0x0f, 0x38, 0xf0, 0xd0}, F::Sse42},
      {"palignr $0x8,%xmm1,%xmm0", {0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08}, F::Ssse3},
      {"roundps $0x0,%xmm1,%xmm0", {0x66, 0x0f, 0x3a, 0x08, 0xc1, 0x00}, F::Sse41},
      {"pblendw $0x1,%xmm1,%xmm0", {0x66, 0x0f, 0x3a, 0x0e, 0xc1, 0x01}, F::Sse41},
      {"pextrb $0x1,%xmm0,%eax", {0x66, 0x0f, 0x3a, 0x14, 0xc0, 0x01}, F::Sse41},
      {"pinsrd $0x1,%eax,%xmm0", {0x66, 0x0f, 0x3a, 0x22, 0xc0, 0x01}, F::Sse41},
      {"dpps $0xff,%xmm1,%xmm0", {0x66, 0x0f, 0x3a, 0x40, 0xc1, 0xff}, F::Sse41},
      {"pcmpistri $0xd,%xmm1,%xmm0", {0x66, 0x0f, 0x3a, 0x63, 0xc1, 0x0d}, F::Sse42},
      {"aeskeygenassist $0x1,%xmm1,%xmm0", {0x66, 0x0f, 0x3a, 0xdf, 0xc1, 0x01}, F::Aes},
      {"aesenc %xmm1,%xmm0", {0x66, 0x0f, 0x38, 0xdc, 0xc1}, F::Aes},
      {"vaddps %ymm2,%ymm1,%ymm0", {0xc5, 0xf4, 0x58, 0xc2}, F::Avx},
      {"vzeroupper", {0xc5, 0xf8, 0x77}, F::Avx},
      {"vbroadcastss (%rdi),%ymm0", {0xc4, 0xe2, 0x7d, 0x18, 0x07}, F::Avx},
      {"vcvtph2ps (%rdi),%ymm0", {0xc4, 0xe2, 0x7d, 0x13, 0x07}, F::F16c},
      {"vfmadd231ps %ymm2,%ymm1,%ymm0", {0xc4, 0xe2, 0x75, 0xb8, 0xc2}, F::Fma},
      {"shlx %eax,%ecx,%edx", {0xc4, 0xe2, 0x79, 0xf7, 0xd1}, F::Bmi2},
      {"vpunpcklbw %ymm2,%ymm1,%ymm0", {0xc5, 0xf5, 0x60, 0xc2}, F::Avx2},
      {"vpunpcklbw %xmm2,%xmm1,%xmm0", {0xc5, 0xf1, 0x60, 0xc2}, F::Avx},
      {"vpcmpeqd %ymm2,%ymm1,%ymm0", {0xc5, 0xf5, 0x76, 0xc2}, F::Avx2},
      {"vpmullw %ymm2,%ymm1,%ymm0", {0xc5, 0xf5, 0xd5, 0xc2}, F::Avx2},
      {"vpaddd %ymm2,%ymm1,%ymm0", {0xc5, 0xf5, 0xfe, 0xc2}, F::Avx2},
      {"vpmaddubsw %ymm2,%ymm1,%ymm0", {0xc4, 0xe2, 0x75, 0x04, 0xc2}, F::Avx2},
      {"vpermq $0xd8,%ymm1,%ymm0", {0xc4, 0xe3, 0xfd, 0x00, 0xc1, 0xd8}, F::Avx2},
      {"vpblendw $0x1,%ymm2,%ymm1,%ymm0", {0xc4, 0xe3, 0x75, 0x0e, 0xc2, 0x01}, F::Avx2},
      {"vpalignr $0x8,%ymm2,%ymm1,%ymm0", {0xc4, 0xe3, 0x75, 0x0f, 0xc2, 0x08}, F::Avx2},
      {"vmpsadbw $0x1,%ymm2,%ymm1,%ymm0", {0xc4, 0xe3, 0x75, 0x42, 0xc2, 0x01}, F::Avx2},
      {"vpblendvb %ymm3,%ymm2,%ymm1,%ymm0", {0xc4, 0xe3, 0x75, 0x4c, 0xc2, 0x30}, F::Avx2},
      {"vpblendw $0x1,%xmm2,%xmm1,%xmm0", {0xc4, 0xe3, 0x71, 0x0e, 0xc2, 0x01}, F::Avx},
      {"vpalignr $0x8,%xmm2,%xmm1,%xmm0", {0xc4, 0xe3, 0x71, 0x0f, 0xc2, 0x08}, F::Avx},
      {"vmpsadbw $0x1,%xmm2,%xmm1,%xmm0", {0xc4, 0xe3, 0x71, 0x42, 0xc2, 0x01}, F::Avx},
      {"vpblendvb %xmm3,%xmm2,%xmm1,%xmm0", {0xc4, 0xe3, 0x71, 0x4c, 0xc2, 0x30}, F::Avx},
      {"{vex} vpdpbusd %ymm2,%ymm1,%ymm0", {0xc4, 0xe2, 0x75, 0x50, 0xc2}, F::AvxVnni},
      {"vaddps %zmm2,%zmm1,%zmm0", {0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2}, F::Avx512},
      {"kmovd %k1,%eax", {0xc5, 0xfb, 0x93, 0xc1}, F::Avx512},
      {"vpermb %zmm2,%zmm1,%zmm0", {0x62, 0xf2, 0x75, 0x48, 0x8d, 0xc2}, F::Avx512Vbmi},
      {"vpermw %zmm2,%zmm1,%zmm0", {0x62, 0xf2, 0xf5, 0x48, 0x8d, 0xc2}, F::Avx512},
      {"vpdpbusd %zmm2,%zmm1,%zmm0", {0x62, 0xf2, 0x75, 0x48, 0x50, 0xc2}, F::Avx512Vnni},
      {"vdpbf16ps %zmm2,%zmm1,%zmm0", {0x62, 0xf2, 0x76, 0x48, 0x52, 0xc2}, F::Avx512Bf16},
      {"vaddph %zmm2,%zmm1,%zmm0", {0x62, 0xf5, 0x74, 0x48, 0x58, 0xc2}, F::Avx512Fp16},
      {"tdpbf16ps %tmm2,%tmm1,%tmm0", {0xc4, 0xe2, 0x6a, 0x5c, 0xc1}, F::Amx},
  };
  for (const Case& c : cases) {
    InstructionCounts counts;
    EXPECT_EQ(decode_x86_64(c.bytes, counts), c.bytes.size()) << c.text;
    expect_family(c, counts);
    InstructionCounts none;
    for (size_t n = 0; n < c.bytes.size(); n++)
      EXPECT_EQ(decode_x86_64(std::span(c.bytes).first(n), none), 0u) << c.text << ", cut at " << n;
  }
  // 06 is none in 64-bit mode, and the maps 0, 4 and 31 of VEX and 0 of EVEX are reserved.
  const std::vector<std::vector<uint8_t>> invalid = {{0x06},
                                                     {0xc4, 0xe0, 0x75, 0x58, 0xc2},
                                                     {0xc4, 0xe4, 0x75, 0x58, 0xc2},
                                                     {0xc4, 0xff, 0x75, 0x58, 0xc2},
                                                     {0x62, 0xf0, 0x74, 0x48, 0x58, 0xc2}};
  for (const std::vector<uint8_t>& bytes : invalid) {
    InstructionCounts counts;
    EXPECT_EQ(decode_x86_64(bytes, counts), 0u) << testing::PrintToString(bytes);
    EXPECT_EQ(counts.of, decltype(counts.of){}) << testing::PrintToString(bytes);
  }
}

TEST(InstructionFamilies, OfArm) {
  const std::vector<std::pair<uint32_t, F>> cases = {
      {0xd65f03c0, F::Count},    // ret
      {0x4e20d400, F::Count},    // fadd v0.4s, v0.4s, v0.4s
      {0x4e20e400, F::Count},    // fcmeq v0.4s, v0.4s, v0.4s
      {0x4e829420, F::DotProd},  // sdot v0.4s, v1.16b, v2.16b
      {0x4f82e020, F::DotProd},  // sdot v0.4s, v1.16b, v2.4b[0]
      {0x6e829420, F::DotProd},  // udot v0.4s, v1.16b, v2.16b
      {0x4e82a420, F::I8mm},     // smmla v0.4s, v1.16b, v2.16b
      {0x4e829c20, F::I8mm},     // usdot v0.4s, v1.16b, v2.16b
      {0x6e42fc20, F::Bf16},     // bfdot v0.4s, v1.8h, v2.8h
      {0x6e42ec20, F::Bf16},     // bfmmla v0.4s, v1.8h, v2.8h
      {0x1e634020, F::Bf16},     // bfcvt h0, s1
      {0x4e421420, F::Fp16},     // fadd v0.8h, v1.8h, v2.8h
      {0x1ee22820, F::Fp16},     // fadd h0, h1, h2
      {0x4e22ec20, F::Fp16},     // fmlal v0.4s, v1.4h, v2.4h
      {0x2518e3e0, F::Sve},      // ptrue p0.b
      {0x25221c20, F::Sve},      // whilelo p0.b, x1, x2
      {0x04a0e3e0, F::Sve},      // cntw x0
      {0xd503477f, F::Sme},      // smstart
  };
  for (const auto& [word, family] : cases) {
    uint8_t bytes[4];
    for (int i = 0; i < 4; i++) bytes[i] = uint8_t(word >> 8 * i);
    InstructionCounts counts;
    count_arm64(bytes, counts);
    for (size_t f = 0; f < size_t(F::Count); f++)
      EXPECT_EQ(counts.of[f], F(f) == family ? 1u : 0u) << std::hex << word << ", " << name_of(F(f));
  }
}

// A piece that begins within an instruction counts nothing false: its first instructions are left out.
TEST(InstructionFamilies, OfAPieceThatBeginsInTheMiddle) {
  std::vector<uint8_t> code;
  for (int i = 0; i < 100; i++)
    for (uint8_t b : {0xb8, 0xc5, 0xf4, 0x58, 0xc2, 0x90}) code.push_back(b);  // mov $0xc258f4c5,%eax; nop
  InstructionCounts from_begin, from_middle;
  count_x86_64(code, 0, from_begin);
  count_x86_64(std::span(code).subspan(1), 16, from_middle);
  for (const InstructionCounts* c : {&from_begin, &from_middle}) EXPECT_EQ(c->of, decltype(c->of){});
  EXPECT_EQ(from_begin.undecoded, 0u);
}

}  // namespace
}  // namespace gimbal
