// Environment variables of shimmy that mean the same as an option here.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace gimbal {

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
