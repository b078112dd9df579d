// hot: megabytes of code pass through here.
// Families of 64-bit ARM instructions, by the encoding index of the Arm Architecture Reference Manual.
#include <cstring>

#include "inspection/instructions.h"

namespace gimbal {
namespace {

struct Encoding {
  uint32_t mask, value;
  InstructionFamily family;
};

// Of SVE and SME only instructions that every such code needs count: predicates, lengths, and the start of a
// mode. The whole of SVE is a sixteenth of all words, which constants between functions would often hit.
constexpr Encoding kEncodings[] = {
    {0x9fe0fc00, 0x0e809400, InstructionFamily::DotProd},  // SDOT, UDOT
    {0x9fc0f400, 0x0f80e000, InstructionFamily::DotProd},  // the same by element
    {0xffe0fc00, 0x4e80a400, InstructionFamily::I8mm},     // SMMLA
    {0xffe0fc00, 0x6e80a400, InstructionFamily::I8mm},     // UMMLA
    {0xffe0fc00, 0x4e80ac00, InstructionFamily::I8mm},     // USMMLA
    {0xbfe0fc00, 0x0e809c00, InstructionFamily::I8mm},     // USDOT
    {0xbfc0f400, 0x0f80f000, InstructionFamily::I8mm},     // USDOT by element
    {0xbfc0f400, 0x0f00f000, InstructionFamily::I8mm},     // SUDOT by element
    {0xbfe0fc00, 0x2e40fc00, InstructionFamily::Bf16},     // BFDOT
    {0xbfc0f400, 0x0f40f000, InstructionFamily::Bf16},     // BFDOT by element
    {0xffe0fc00, 0x6e40ec00, InstructionFamily::Bf16},     // BFMMLA
    {0xbfe0fc00, 0x2ec0fc00, InstructionFamily::Bf16},     // BFMLALB, BFMLALT
    {0xbffffc00, 0x0ea16800, InstructionFamily::Bf16},     // BFCVTN
    {0xfffffc00, 0x1e634000, InstructionFamily::Bf16},     // BFCVT
    {0x9f60c400, 0x0e400400, InstructionFamily::Fp16},     // three vectors of halves
    {0xffe00c00, 0x1ee00800, InstructionFamily::Fp16},     // two halves
    {0xbfc0b400, 0x0f001000, InstructionFamily::Fp16},     // FMLA, FMLS by element
    {0xbfc0f400, 0x0f009000, InstructionFamily::Fp16},     // FMUL by element
    {0xbf60fc00, 0x0e20ec00, InstructionFamily::Fp16},     // FMLAL, FMLSL
    {0xbf60fc00, 0x2e20cc00, InstructionFamily::Fp16},     // FMLAL2, FMLSL2
    {0xff3ffc10, 0x2518e000, InstructionFamily::Sve},      // PTRUE
    {0xff20e000, 0x25200000, InstructionFamily::Sve},      // WHILELO and others
    {0xff20fc00, 0x0420e000, InstructionFamily::Sve},      // CNTB, CNTH, CNTW, CNTD
    {0xfffff800, 0x04bf5000, InstructionFamily::Sve},      // RDVL
    {0xfffff8ff, 0xd503407f, InstructionFamily::Sme},      // SMSTART, SMSTOP
};

}  // namespace

void count_arm64(std::span<const uint8_t> code, InstructionCounts& to) {
  for (size_t at = 0; at + 4 <= code.size(); at += 4) {
    uint32_t w;
    std::memcpy(&w, code.data() + at, 4);
    for (const Encoding& e : kEncodings)
      if ((w & e.mask) == e.value) {
        to.add(e.family);
        break;
      }
  }
}

}  // namespace gimbal
