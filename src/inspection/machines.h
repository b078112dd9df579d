// Names of processors, by the numbers of each file format.
#pragma once
#include <cstdint>
#include <string>

namespace gimbal {

std::string elf_machine(uint16_t number, int bits);
std::string macho_machine(uint32_t type, uint32_t subtype);
std::string coff_machine(uint16_t number);
// The machine that this program runs on, by the same names; "" if it has none here.
std::string this_machine();

}  // namespace gimbal
