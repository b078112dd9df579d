#include "apps/toolkit/words_elsewhere.h"

#include <algorithm>
#include <cstdlib>

#include "base/folders.h"

namespace gimbal {
namespace {

// src/main.rs and src/port_manager.rs of shimmy read these. SHIMMY_MODEL_PATHS is read with GIMBAL_MODELS
// (engine/model_catalog.cpp).
constexpr struct {
  const char *variable, *option;
} kVariables[] = {
    {"SHIMMY_BASE_GGUF", "--model"},     {"SHIMMY_LORA_GGUF", "--lora"},   {"SHIMMY_MAX_CTX", "--ctx"},
    {"SHIMMY_BIND_ADDRESS", "--host"},   {"SHIMMY_KV_QUANT", "--kv-type"}, {"SHIMMY_BIND_ADDRESS", "--port"},
    {"SHIMMY_PREFILL_CHUNK", "--batch"},
};

}  // namespace

std::optional<Bind> split_bind(const std::string& value) {
  const size_t colon = value.rfind(':');
  if (colon == value.npos) return std::nullopt;
  return Bind{value.substr(0, colon), value.substr(colon + 1)};
}

std::string kv_type_of_shimmy(const std::string& value) { return value == "int4" ? "q4_0" : value; }

std::optional<VariableElsewhere> variable_elsewhere(std::string_view option, bool model_typed) {
  for (const auto& [variable, ours] : kVariables) {
    if (option != ours) continue;
    std::string value = environment_variable(variable);
    if (value.empty() || (option == "--lora" && model_typed)) continue;
    if (option == "--kv-type") value = kv_type_of_shimmy(value);
    if (option == "--host" || option == "--port") {
      const auto bind = split_bind(value);
      if (!bind) continue;  // "auto"
      value = option == "--host" ? bind->host : bind->port;
    }
    return VariableElsewhere{variable, std::move(value)};
  }
  return std::nullopt;
}

void add_model_folders(std::string folders) {
  std::replace(folders.begin(), folders.end(), ';', ':');
  const std::string others = environment_variable("GIMBAL_MODELS");
  setenv("GIMBAL_MODELS", (others.empty() ? folders : folders + ":" + others).c_str(), 1);
}

}  // namespace gimbal
