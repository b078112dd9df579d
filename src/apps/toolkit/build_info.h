// The contents of a build as text for `--build-info`, equal on every machine.
#pragma once
#include <string>
#include <vector>

namespace gimbal {

// `first`: the first line, ending without a newline. Then one line each: options of the configure step,
// backends with the hardware they were tested on, architectures of models, number formats, libraries with
// their versions.
std::string build_info(const std::string& first, const std::vector<std::string>& backends);

}  // namespace gimbal
