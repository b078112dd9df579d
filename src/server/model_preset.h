// Defaults that belong to a model's name, beside its file: from POST /api/create and from --config.
#pragma once
#include <string>

#include "base/json.h"

namespace gimbal {

struct ModelPreset {
  std::string system;              // the first message of conversations without one of the system
  std::string chat_template = {};  // Jinja; empty: the file's
  Json options = Json::object();   // defaults of requests, under the names of Ollama's API

  // "num_ctx" of the options; 0: not given.
  int64_t context() const;
};

}  // namespace gimbal
