// Shared by the handlers of Ollama's paths.
#pragma once
#include <string>

#include "server/api/call.h"
#include "server/api/settings.h"

namespace gimbal::api {

// Reads "model", or "name" of older clients, and loads it with a context of "options.num_ctx" if it can be.
Refused ollama_model(Call&, Fields&, bool generates, ServedModelPtr& to);
// Reads "options", with Ollama's defaults. As in Ollama, settings that only the server has and unknown ones
// are taken and ignored; a note names them.
void read_ollama_options(Call&, Fields&, Settings& to);
// The same of an object, which the field `where` has.
void read_ollama_parameters(Call&, Fields&, const char* where, const Json& object, Settings& to);
// The same for a path without sampling.
void ignore_ollama_options(Call&, Fields&);
// "keep_alive": seconds, or a text such as "5m"; below 0: for ever. Nothing: it is not given.
std::optional<double> read_keep_alive(Fields&);
// Whether a request without a text is one to unload its model; then it is answered, or a mistake in it is.
bool unloads(Call&, Fields&, std::optional<double> keep_alive, bool chat, Refused& no);
// The answer to a request that only loads or unloads a model.
void answer_without_text(Call&, const std::string& model, const char* reason, bool chat);
// "format" and the like.
void read_ollama_common(Fields&, Settings& to);
// {format, family, parameter_size, quantization_level ...}
Json ollama_details(const ModelSource&);

}  // namespace gimbal::api
