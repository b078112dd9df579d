// A request in the form of /v1/chat/completions, for the paths that answer it or tell its prompt.
#pragma once
#include "server/api/call.h"
#include "server/api/prompt.h"

namespace gimbal::api {

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
