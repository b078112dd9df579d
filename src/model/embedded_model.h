// The model inside the program: `gimbal run` uses it if the user names no file, so that it needs neither a
// file nor a network. It is a whole GGUF file, read through the same parser as any other.
#pragma once
#include <string_view>

#include "base/bytes.h"

namespace gimbal {

inline constexpr std::string_view kEmbeddedModelName = "stories260K";

// The bytes of assets/stories260K.gguf. They start on a 64-byte boundary and live as long as the process.
Bytes embedded_model();

}  // namespace gimbal
