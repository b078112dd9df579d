// Shared by the handlers of Ollama's paths.
#pragma once
#include <string>

#include "server/api/call.h"
#include "server/api/settings.h"

namespace gimbal::api {

// Reads "model", or "name" of older clients.
Refused ollama_model(Call&, Fields&, bool generates, ServedModelPtr& to);
// Reads "options", with Ollama's defaults.
void read_ollama_options(Fields&, const ServedModel&, Settings& to);
// Reads "keep_alive", "format" and similar fields.
void read_ollama_common(Fields&, Settings& to);
// {format, family, parameter_size, quantization_level ...}
Json ollama_details(const ModelSource&);

}  // namespace gimbal::api
