// Shared by the endpoints of llama.cpp's server (tools/server/README.md there names their fields).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/call.h"
#include "server/api/settings.h"

namespace gimbal::api {

// The fields of a native completion, but for its prompt.
struct LlamaRequest {
  Settings settings;
  int max_tokens = -1;  // as asked: -1: no limit; 0: the prompt is computed, and nothing is written
  int probabilities = 0;
  bool stream = false, returns_tokens = false, times_tokens = false;
  std::vector<std::string> fields;  // of the answer; empty: all
  LineLimits limits;
  std::vector<std::string> samplers;  // those that apply, in their order
};

void read_llama_request(Fields&, Call&, const ServedModel&, LlamaRequest& to);
// llama.cpp's defaults: the same as those of gimbal's own command line.
LlamaRequest default_llama_request();
// The settings as the answer repeats them.
Json generation_settings(const LlamaRequest&, const ServedModel&);

// Starts the answers to the prompts. `one`: the answer is an object, not a list.
Refused start_completion(Call&, ServedModelPtr, LlamaRequest, std::vector<std::vector<Token>> prompts,
                         bool one);

// "a b" of "x=1&model=a%20b"; nothing: the query has no such field.
std::optional<std::string> query_field(std::string_view query, std::string_view name);
// The model that a GET means: its query's `model`, or the only one.
Refused model_of_query(Call&, ServedModelPtr& to);

}  // namespace gimbal::api
