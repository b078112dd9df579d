// A name of a model in the APIs, with defaults of its own: its preset.
#pragma once
#include <string>

#include "base/json.h"
#include "server/model.h"

namespace gimbal {

struct ModelPreset {
  std::string system;              // the first message of conversations without one of the system
  std::string chat_template = {};  // Jinja; empty: the file's
  Json options = Json::object();   // defaults of requests, under the names of Ollama's API

  // "num_ctx" of the options; 0: not given.
  int64_t context() const;
};

// `preset` may be nullptr. Errors: those of Template::parse().
Result<ServedModelPtr> named_model(ServedModelPtr base, std::string id,
                                   std::shared_ptr<const ModelPreset> preset);

}  // namespace gimbal
