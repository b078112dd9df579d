// Shared by the answers in OpenAI's formats.
#pragma once
#include "base/json.h"
#include "server/api/answer.h"
#include "server/api/call.h"
#include "server/api/fields.h"
#include "server/api/prompt.h"

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

// A request in the form of /v1/chat/completions, for the paths that answer it or tell its prompt.
struct ChatCall {
  ServedModelPtr model;
  ChatInput input;
  Settings settings;
  Prompt prompt;
  bool logprobs = false;
  bool stream = false, usage = false;  // the stream ends with token counts
  bool times_tokens = false;           // every event has timings
};

// Reads all of it and renders the prompt.
Refused read_chat(Call&, ChatCall& to);

}  // namespace gimbal::api
