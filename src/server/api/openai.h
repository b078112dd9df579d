// What the forms of OpenAI's answers have in common.
#pragma once
#include "base/json.h"
#include "server/api/answer.h"
#include "server/api/fields.h"

namespace gimbal::api {

Json openai_usage(const Usage&);
// "stream" and "stream_options"; `usage`: whether the stream is to end with it.
bool read_stream(Fields&, bool& usage);
// The event of an error within a stream, and its end.
void add_openai_error(std::string& out, const ApiError&);

}  // namespace gimbal::api
