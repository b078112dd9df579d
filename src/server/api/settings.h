// Generation settings, under the names that most APIs use.
#pragma once
#include <string>
#include <vector>

#include "runtime/sampling_table.h"
#include "server/api/fields.h"
#include "server/model.h"

namespace gimbal::api {

struct Settings {
  GenerationRequest request;  // without a prompt
  int n = 1;
  bool seeded = false;
};

// All filters are off until set; the penalties cover the whole text.
SamplerSettings plain_sampler();
// Reads each sampling setting by its name in this API: &SamplingSetting::openai or ::ollama.
void read_sampling(Fields&, JsonField SamplingSetting::*api, SamplerSettings& to);
// The settings that the model's name has (ModelPreset): they come in place of the API's defaults.
void apply_preset(const ServedModel&, Settings& to);
// Reads sampling, seed, logit_bias, stop, n, and fields beyond OpenAI's: ignore_eos, grammar,
// certificate, lora.
void read_settings(Fields&, const ServedModel&, Settings& to);
// Checks the field "certificate": true, false or "private". Call::fill() obeys it.
void read_certificate(Fields&);
// Reads the required form of the answer: {"type": "text"}, "json_object", or "json_schema" with the schema
// in an object of that name (`nested`) or beside it. `name`: the field.
void read_response_format(Fields&, const char* name, bool nested, Settings& to);
// Converts a schema to GenerationRequest::grammar. An unsupported schema is an error in the field.
void set_schema(Fields&, const char* name, const Json& schema, Settings& to);
void set_json_object(Fields&, const char* name, Settings& to);
// {id or text: bias}; that of a text is added to each of its tokens.
void read_logit_bias(Fields&, const Tokenizer&, SamplerSettings& to);
// Values beyond the context are reduced later.
void read_max_tokens(Fields&, const char* name, int64_t least, Settings& to);
void set_seed(Fields&, const char* name, Settings& to);

// Makes `n` requests per prompt. Reduces `max_tokens` to the context left after the prompt. Refused: a
// prompt longer than the context.
Refused requests_of(const ServedModel&, const Settings&, std::vector<std::vector<Token>> prompts,
                    std::vector<GenerationRequest>& to);

}  // namespace gimbal::api
