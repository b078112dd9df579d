// The LoRA adapters of served models: their scales for one request, and for requests that give none.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "server/api/fields.h"
#include "server/model.h"

namespace gimbal::api {

// The scales that POST /lora-adapters set, by model. Thread-safe.
class AdapterScales {
 public:
  void set(const std::string& model, std::vector<float> scales);
  // By adapter; empty: none were set, so those that the model was loaded with.
  std::vector<float> of(const ServedModel&) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<float>> set_;  // by the model's id
};

// Reads `lora`, [{"id": 0, "scale": 0.5}, ...], into a scale for each of the model's adapters; one that the
// list does not have gets 0. An absent field changes nothing.
void read_adapters(Fields&, const ServedModel&, std::vector<float>& to);
// `scales`: by adapter; empty: those that the model was loaded with.
Json adapters_json(const ServedModel&, const std::vector<float>& scales);

// The names of the adapters: of their files, without ".gguf".
std::vector<std::string> adapter_names(const ServedModel&);
// -1: there is none of this name, or there are several.
int adapter_named(const ServedModel&, const std::string& name);
// The scales for a request that means this adapter: its own, or 1 if that is 0; the others are not applied.
std::vector<float> only_adapter(const ServedModel&, int adapter);

}  // namespace gimbal::api
