// Checks that a file is a complete library for this machine: the dynamic loader trusts the file that it maps
// and crashes if it is truncated.
#pragma once
#include "base/bytes.h"
#include "base/result.h"

namespace gimbal {

// Checks the ELF header, program headers and section headers. Errors: Failed with a predicate to append to
// the file's name ("is for another processor ...").
Status check_elf_library(Bytes file);

}  // namespace gimbal
