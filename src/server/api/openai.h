// Shared by the answers in OpenAI's formats.
#pragma once
#include "base/json.h"
#include "server/api/answer.h"
#include "server/api/fields.h"

namespace gimbal::api {

Json openai_usage(const Usage&);
// "system_fingerprint": the program, which alone decides the bits of an answer with a seed.
std::string fingerprint(const std::string& version);
// Reads "stream" and "stream_options"; `usage`: whether the stream ends with token counts.
bool read_stream(Fields&, bool& usage);
// A hint that the model gets nothing of: it writes as the messages ask.
void read_verbosity(Fields&);
// Appends an error event and the end of a stream.
void add_openai_error(std::string& out, const ApiError&);

}  // namespace gimbal::api
