// Whether a file is a whole library for this machine: the loader trusts what it maps, and dies of a file that
// ends too early.
#pragma once
#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// Reads the ELF header and the headers of its parts. Errors: Failed with a sentence that goes on from the
// file's name ("is for another processor ...").
Status check_elf_library(Bytes file);

}  // namespace gimbal
