// Errors of the APIs, in the format that each API's clients expect.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "server/http/message.h"

namespace gimbal::api {

enum class Dialect : uint8_t { OpenAi, Anthropic, Ollama, WebSocket };
// The API that a path belongs to; never WebSocket, which is for the messages on one.
Dialect dialect_of(std::string_view path);

struct ApiError {
  int status = 400;
  std::string message = {};  // for people; contains no path and no source
  std::string param = {};    // the field at fault; may be empty
  std::string code = {};     // "model_not_found"; may be empty
  int retry_after = 0;       // seconds; 0: not given
};
using Refused = std::optional<ApiError>;

// Status 400 for an invalid field.
ApiError wrong_field(std::string param, std::string message);
ApiError unknown_model(const std::string& name);
ApiError context_exceeded(size_t tokens, int context);
// An error of the engine, without details that only the machine's owner may see.
ApiError of(const Error&);

// The body, without a trailing newline. `request_id`: included if the API's format has it.
std::string error_text(Dialect, const ApiError&, const std::string& request_id);
// Adds the header with the request id, if the API has one.
void add_request_id(std::vector<http::Header>& to, Dialect, const std::string& request_id);
http::Response error_response(Dialect, const ApiError&, const std::string& request_id);

}  // namespace gimbal::api
