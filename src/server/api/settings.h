// The settings of an answer, as most APIs call them.
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

// No filters but those that are asked for; the penalties look at all of the text.
SamplerSettings plain_sampler();
// Sets each setting that the request has, by its name in this API: &SamplingSetting::openai or ::ollama.
void read_sampling(Fields&, JsonField SamplingSetting::*api, SamplerSettings& to);
// Sampling, seed, logit_bias, stop, n, and two that OpenAI lacks: ignore_eos and grammar.
void read_settings(Fields&, const ServedModel&, Settings& to);
// What the answer must be: {"type": "text"}, "json_object", or "json_schema" with the schema in an object of
// that name (`nested`) or beside it. `name`: the field.
void read_response_format(Fields&, const char* name, bool nested, Settings& to);
// The schema becomes GenerationRequest::grammar. One that cannot be obeyed is a mistake in the field.
void set_schema(Fields&, const char* name, const Json& schema, Settings& to);
void set_json_object(Fields&, const char* name, Settings& to);
// {id: bias}
void read_logit_bias(Fields&, int vocabulary, SamplerSettings& to);
// What is beyond any context is cut off later.
void read_max_tokens(Fields&, const char* name, int64_t least, Settings& to);
void set_seed(Fields&, const char* name, Settings& to);

// A request for each of `n` choices of each prompt. What does not fit behind a prompt is cut off
// `max_tokens`. Refused: a prompt that is longer than the context.
Refused requests_of(const ServedModel&, const Settings&, std::vector<std::vector<Token>> prompts,
                    std::vector<GenerationRequest>& to);

}  // namespace gimbal::api
