// What Ollama's paths have in common.
#pragma once
#include <string>

#include "server/api/call.h"
#include "server/api/settings.h"

namespace gimbal::api {

// "model", or "name" as older clients call it.
Refused ollama_model(Call&, Fields&, bool generates, ServedModelPtr& to);
// "options", with the defaults that Ollama has.
void read_ollama_options(Fields&, const ServedModel&, Settings& to);
// "keep_alive", "format" and the like.
void read_ollama_common(Fields&, Settings& to);
// {format, family, parameter_size, quantization_level ...}
Json ollama_details(const ModelSource&);

}  // namespace gimbal::api
