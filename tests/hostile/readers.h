// gimbal's readers over one hostile file each: what they answered, and whether the answer keeps its promises.
#pragma once
#include <optional>
#include <string>

#include "support/hostile_files.h"

namespace gimbal::test {

struct Answer {
  bool accepted = false;
  std::string error;   // if it was refused
  std::string broken;  // a promise of the reader that did not hold; empty: none
};

// nullopt: gimbal has no reader for this kind.
std::optional<Answer> read_hostile(const HostileFile& file, const std::string& data);

// The largest memory that a reader may allocate for a file of this kind and size: at once, and in all.
struct Allowance {
  size_t at_once, in_all;
};
Allowance allowance(const std::string& kind, size_t bytes);

}  // namespace gimbal::test
