// The linker's build id of a program or library: it distinguishes builds of one version.
#pragma once
#include <string>

namespace gimbal {

// Hex digits of the GNU build id of the loaded object that
// contains `address`; empty if it has none.
std::string build_id_of(const void* address);

}  // namespace gimbal
