// Counts of instructions by family, in pieces of machine code.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace gimbal {

enum class InstructionFamily : uint8_t {
#define GIMBAL_INSTRUCTIONS(id, name, flag) id,
#include "inspection/instruction_families.def"
#undef GIMBAL_INSTRUCTIONS
  Count
};
const char* name_of(InstructionFamily);
const char* flag_of(InstructionFamily);  // in Linux's /proc/cpuinfo

struct InstructionCounts {
  std::array<uint64_t, size_t(InstructionFamily::Count)> of{};
  uint64_t undecoded = 0;  // bytes
  void add(InstructionFamily f) { of[size_t(f)]++; }
};

// Decodes one after the other from the first byte. `skip`: the first instructions that are not counted, since
// a piece may begin within one; decoding finds the right boundaries after a few. An instruction that does
// not end in the piece is not counted.
void count_x86_64(std::span<const uint8_t> code, size_t skip, InstructionCounts&);
// Any piece at a multiple of 4.
void count_arm64(std::span<const uint8_t> code, InstructionCounts&);

// The length of the instruction at the beginning of `code`; 0 if it is none, or does not end there. Adds its
// family, if it has one.
size_t decode_x86_64(std::span<const uint8_t> code, InstructionCounts&);

}  // namespace gimbal
