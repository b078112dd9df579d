// The linker's fingerprint of a program or library: what tells two builds of one version apart.
#pragma once
#include <string>

namespace gimbal {

// Hex digits of the GNU build id of the object that holds `address` in this process; empty where the linker
// left none.
std::string build_id_of(const void* address);

}  // namespace gimbal
