#include "inspection/image_reader.h"

#include "base/format.h"

namespace gimbal {

// System V ABI, list of e_machine.
std::string elf_machine(uint16_t number, int bits) {
  switch (number) {
    case 2:
    case 18: return "SPARC";
    case 43: return "SPARC 64";
    case 3: return "x86";
    case 8: return "MIPS";
    case 20: return "PowerPC";
    case 21: return "PowerPC 64";
    case 22: return "S/390";
    case 40: return "ARM";
    case 62: return bits == 32 ? "x32" : "x86-64";
    case 183: return "arm64";
    case 190: return "NVIDIA GPU";
    case 224: return "AMD GPU";
    case 243: return bits == 32 ? "RISC-V 32" : "RISC-V 64";
    case 247: return "BPF";
    case 252: return "C-SKY";
    case 258: return "LoongArch";
    default: return format("ELF machine {}", number);
  }
}

// mach/machine.h.
std::string macho_machine(uint32_t type, uint32_t subtype) {
  switch (type) {
    case 7: return "x86";
    case 12: return "ARM";
    case 18: return "PowerPC";
    case 0x01000007: return (subtype & 0xffffff) == 8 ? "x86-64 (Haswell)" : "x86-64";
    case 0x0100000c: return (subtype & 0xffffff) == 2 ? "arm64e" : "arm64";
    case 0x0200000c: return "arm64_32";
    case 0x01000012: return "PowerPC 64";
    default: return format("Mach-O CPU type {:#x}", type);
  }
}

// PE format, machine types.
std::string coff_machine(uint16_t number) {
  switch (number) {
    case 0x14c: return "x86";
    case 0x1c0:
    case 0x1c4: return "ARM";
    case 0x8664: return "x86-64";
    case 0xaa64: return "arm64";
    case 0xa641: return "arm64ec";
    case 0xa64e: return "arm64x";
    default: return format("PE machine {:#x}", number);
  }
}

std::string this_machine() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "";
#endif
}

}  // namespace gimbal
