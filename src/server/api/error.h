// What an API refuses, in the shape that its clients expect.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "server/http/message.h"

namespace gimbal::api {

enum class Dialect : uint8_t { OpenAi, Anthropic, Ollama };
// Which API a path belongs to.
Dialect dialect_of(std::string_view path);

struct ApiError {
  int status = 400;
  std::string message = {};  // for people; no path, no source
  std::string param = {};    // the field at fault; may be empty
  std::string code = {};     // "model_not_found"; may be empty
  int retry_after = 0;       // seconds; 0: does not say
};
using Refused = std::optional<ApiError>;

// A field that is wrong.
ApiError wrong_field(std::string param, std::string message);
ApiError unknown_model(const std::string& name);
ApiError context_exceeded(size_t tokens, int context);
// A failure of the engine, without what only the owner of the machine may read.
ApiError of(const Error&);

// Its body, without a line's end. `request_id`: for those shapes that have it.
std::string error_text(Dialect, const ApiError&, const std::string& request_id);
// The header that tells it, where the API has one.
void add_request_id(std::vector<http::Header>& to, Dialect, const std::string& request_id);
http::Response error_response(Dialect, const ApiError&, const std::string& request_id);

}  // namespace gimbal::api
