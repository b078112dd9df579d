// Options of other programs: llama.cpp, Ollama, LM Studio, shimmy.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gimbal {

// Renames options that the command has under another name, and drops those that ask for what always happens,
// with a sentence in `notes`. Errors: Usage for the others, saying what to write instead; so that "-fa" is
// never read as "-f a". `has`: the command's option of this name; none, a flag, or one that takes a value.
enum class OptionKind : uint8_t { None, Flag, Value };
Status translate_options(std::vector<std::string>& args, const std::string& command,
                         const std::function<OptionKind(std::string_view)>& has,
                         std::vector<std::string>& notes);

}  // namespace gimbal
