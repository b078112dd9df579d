// Options and environment variables of other programs: llama.cpp, Ollama, LM Studio, shimmy.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
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

// Environment variables of shimmy that mean the same as an option here.
struct VariableElsewhere {
  std::string name, value;  // SHIMMY_MAX_CTX; as the option takes it
};

// The value that one of these variables gives the option, such as "--ctx". `model_typed`: the command line
// names a model, so the adapter of shimmy's own model is left out.
std::optional<VariableElsewhere> variable_elsewhere(std::string_view option, bool model_typed);

// "ADDRESS:PORT", split at the last colon. Empty without a colon.
struct Bind {
  std::string host, port;
};
std::optional<Bind> split_bind(const std::string& value);

// "int4" of shimmy is q4_0 here; other words stay.
std::string kv_type_of_shimmy(const std::string& value);

// Folders of --model-dirs, with semicolons between, go before those of $GIMBAL_MODELS: for this process and
// those that it starts.
void add_model_folders(std::string folders);

}  // namespace gimbal
